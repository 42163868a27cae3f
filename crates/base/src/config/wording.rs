//! What the TOML reader says, in the words of whoever writes the file: keys, tables and numbers instead of Rust's types.

/// A complaint without the names of types.
#[must_use]
pub fn plain(message: &str) -> String {
    let mut text = message.trim_end().replace('\n', " ");
    for (theirs, ours) in PHRASES {
        text = text.replace(theirs, ours);
    }
    match text.split_once("expected ") {
        Some((before, expected)) => format!("{before}expected {}", without_type(expected)),
        None => text,
    }
}

/// What was expected, if its words begin with a type of Rust's, in plain words; what follows the type stays.
fn without_type(expected: &str) -> String {
    for (kind, ours) in KINDS {
        if let Some(rest) = expected.strip_prefix(kind) {
            let name = rest.trim_start();
            let end = name.find(|c: char| !(c.is_alphanumeric() || "_:".contains(c))).unwrap_or(name.len());
            let rest = &name[end..];
            // How many keys a table may have helps nobody who wrote a list.
            let rest = if rest.starts_with(" with ") {
                rest.find(" in `").map_or("", |at| &rest[at..])
            } else {
                rest
            };
            return format!("{ours}{rest}");
        }
    }
    let end = expected.find(|c: char| !c.is_ascii_alphanumeric()).unwrap_or(expected.len());
    let (word, rest) = expected.split_at(end);
    match NUMBERS.iter().find(|(theirs, _)| *theirs == word) {
        Some((_, ours)) => format!("{ours}{rest}"),
        None => expected.to_owned(),
    }
}

/// Whole phrases.
const PHRASES: [(&str, &str); 14] = [
    ("unknown field", "unknown key"),
    ("missing field", "missing key"),
    ("unknown variant", "unknown value"),
    ("wanted exactly 1 element, found 0 elements", "an empty table; allowed is exactly one key"),
    ("wanted exactly 1 element, more than 1 element", "a table with several keys; allowed is exactly one"),
    ("wanted string or table", "neither a name nor a table"),
    ("invalid type: unit variant, expected string only", "neither a name nor a table"),
    ("invalid type: unit variant, expected struct variant", "a name alone; it needs a table of its keys"),
    ("invalid type: map", "invalid type: table"),
    ("invalid type: sequence", "invalid type: list"),
    ("expected fewer elements in map", "expected a table of one kind"),
    ("expected a boolean", "expected true or false"),
    ("expected a map", "expected a table"),
    ("expected a sequence", "expected a list"),
];

/// Kinds of types, each before a name.
const KINDS: [(&str, &str); 7] = [
    ("struct variant", "a table"),
    ("newtype variant", "a table"),
    ("tuple variant", "a list"),
    ("unit variant", "a name alone"),
    ("struct ", "a table"),
    ("a nonzero ", "a whole number above 0"),
    ("enum ", "a name, or a table of one kind"),
];

/// Types of numbers.
const NUMBERS: [(&str, &str); 8] = [
    ("u8", "a whole number from 0 to 255"),
    ("u16", "a whole number from 0 to 65535"),
    ("u32", "a whole number from 0 to 4294967295"),
    ("u64", "a whole number from 0 upwards"),
    ("usize", "a whole number from 0 upwards"),
    ("i64", "a whole number"),
    ("f32", "a number"),
    ("f64", "a number"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_become_words() {
        for (theirs, ours) in [
            (
                "invalid type: integer `3`, expected struct variant ErrorModel::Erasure in `link.a`",
                "invalid type: integer `3`, expected a table in `link.a`",
            ),
            (
                "invalid type: integer `3`, expected struct Bulk\n",
                "invalid type: integer `3`, expected a table",
            ),
            (
                "invalid value: integer `-1`, expected u32",
                "invalid value: integer `-1`, expected a whole number from 0 to 4294967295",
            ),
            (
                "invalid type: string \"x\", expected f64 in `a.b`",
                "invalid type: string \"x\", expected a number in `a.b`",
            ),
            ("unknown field `a`, expected `b` or `c`", "unknown key `a`, expected `b` or `c`"),
            ("missing field `rate`\nin `link.sat`", "missing key `rate` in `link.sat`"),
            (
                "invalid type: unit variant, expected struct variant",
                "a name alone; it needs a table of its keys",
            ),
            (
                "invalid value: integer `-1`, expected a nonzero u32 in `a`",
                "invalid value: integer `-1`, expected a whole number above 0 in `a`",
            ),
            (
                "invalid length 0, expected struct Link with 11 elements in `link.a`",
                "invalid length 0, expected a table in `link.a`",
            ),
            ("expected one of `struct`", "expected one of `struct`"),
        ] {
            assert_eq!(plain(theirs), ours);
        }
    }
}
