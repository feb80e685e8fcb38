"""What happens to acknowledged events when processes, disks and connections fail. Seeded: a red run is red again."""
