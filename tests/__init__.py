"""The tests of this project, one file a module; they must not need the network, an engine or a GPU unless marked so."""
