"""What people would use instead: machines of other papers, one file each."""

from lantm.machines.peers.dnc import DNCCell
from lantm.machines.peers.ntm import NTMCell
from lantm.machines.peers.stack import StackCell
from lantm.machines.peers.tape import TapeCell
from lantm.machines.peers.transformer import Transformer

__all__ = ["DNCCell", "NTMCell", "StackCell", "TapeCell", "Transformer"]
