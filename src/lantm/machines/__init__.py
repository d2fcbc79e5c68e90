"""Cells and what is made of them: the seven machines of the paper (sections 4.3 and 5)."""
