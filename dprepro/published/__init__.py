"""Every number the reproduced documents print."""
