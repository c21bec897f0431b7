"""The lake file as typed, frozen, validated values, and every physical name that follows from it."""
