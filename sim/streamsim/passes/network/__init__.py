"""Networks: who may send at the same time. One file per rule."""
