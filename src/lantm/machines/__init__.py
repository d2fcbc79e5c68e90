"""Cells and what is made of them: the seven machines of the paper (sections 3.3 and 4)."""
