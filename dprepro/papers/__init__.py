"""All numbers that the reproduced documents print."""
