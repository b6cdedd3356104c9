"""How policies learn, whatever they are: what placements are compared with, kept, and tried."""
