"""The words in TICKIT's generated rows."""

from __future__ import annotations

CATEGORIES = (
    ("Sports", "MLB", "Major League Baseball"),
    ("Sports", "NHL", "National Hockey League"),
    ("Sports", "NFL", "National Football League"),
    ("Sports", "NBA", "National Basketball Association"),
    ("Sports", "MLS", "Major League Soccer"),
    ("Shows", "Musicals", "Musical theatre"),
    ("Shows", "Plays", "All non-musical theatre"),
    ("Shows", "Opera", "All opera and light opera"),
    ("Concerts", "Pop", "All rock and pop music concerts"),
    ("Concerts", "Jazz", "All jazz singers and bands"),
    ("Concerts", "Classical", "All symphony, concerto, and choir concerts"),
)

EVENT_NAMES = {
    "Sports": ("Season Opener", "Home Derby", "Charity Match", "Cup Tie", "All-Star Night", "Final"),
    "Shows": ("Macbeth", "Hamlet", "Rigoletto", "La Bohème", "Die Zauberflöte", "The Seagull", "Candide"),
    "Concerts": (
        "Winter Gala",
        "Sinfonía N.º 5",
        "Late Session",
        "Unplugged",
        "Reunion Tour",
        "Carmina Burana",
    ),
}

TAGS = ("family", "outdoor", "premiere", "matinée", "sold out soon", "18+", "accessible", '"encore"')

FIRST_NAMES = (
    "Amelia", "Björn", "Chloé", "Dmitri", "Esra", "Fatima", "Grace", "Hiroshi", "Inés", "João", "Keiko",
    "Liam", "Małgorzata", "Noor", "Olga", "Paul", "Quinn", "Rosa", "Søren", "Thandi", "Uma", "Viktor",
    "Wen", "Zoë",
)  # fmt: skip

LAST_NAMES = (
    "Adeyemi", "Brown", "Castañeda", "Dvořák", "Evans", "Fischer", "Garcia", "Haddad", "Ivanova", "Johnson",
    "Kowalski", "Lindqvist", "Müller", "Nakamura", "O'Brien", "Patel", "Quispe", "Rossi", "Şahin", "Tanaka",
    "Usman", "Vargas", "Weiß", "Yildirim",
)  # fmt: skip

CITIES = (
    ("Boston", "MA"), ("Chicago", "IL"), ("Dallas", "TX"), ("Denver", "CO"), ("Miami", "FL"),
    ("Nashville", "TN"), ("New Orleans", "LA"), ("New York City", "NY"), ("Oakland", "CA"), ("Phoenix", "AZ"),
    ("Portland", "OR"), ("San Francisco", "CA"), ("Seattle", "WA"), ("Washington", "DC"),
)  # fmt: skip

VENUE_KINDS = ("Arena", "Ballpark", "Opera House", "Park", "Playhouse", "Stadium", "Theatre", "Pavilion")

LANGUAGES = ("en", "de", "es", "fr", "ja", "pt")
