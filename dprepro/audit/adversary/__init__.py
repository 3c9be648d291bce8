"""An adversary who knows all rows but one, and works out each answer by the papers' formulas.

It shares no code with what it audits: its modules import NumPy, the standard library and each
other, and `transcript` alone the listener that hears the answers. A fault in a kernel, a loss or a
curator is not repeated here.
"""
