"""streamplace decides where every operator of a stream graph runs."""
