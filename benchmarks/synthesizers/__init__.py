"""What a gate makes of common synthesizers, over public tables: `make study`."""
