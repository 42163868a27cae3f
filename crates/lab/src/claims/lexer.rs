//! Words of the check language: numbers, texts, names and signs, each with its place.

use core::ops::Range;

use super::parser::ParseError;

/// A word and where it stands in the source, in bytes.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Token {
    pub(super) kind: Kind,
    pub(super) span: Range<usize>,
}

/// What kind of word.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Kind {
    Number(f64),
    Text(String),
    /// A name or a keyword.
    Name(String),
    /// An operator or a bracket.
    Sign(&'static str),
    End,
}

/// Every sign, the longer ones first.
const SIGNS: [&str; 23] = [
    "**", "//", "<=", ">=", "==", "!=", "<", ">", "+", "-", "*", "/", "%", "(", ")", "[", "]", "{", "}", ",",
    ":", "=", ".",
];

/// The words of `source`, the last of them [`Kind::End`].
pub(super) fn tokens(source: &str) -> Result<Vec<Token>, ParseError> {
    let mut tokens = Vec::new();
    let mut at = 0;
    while let Some(first) = source[at..].chars().next() {
        if first.is_whitespace() {
            at += first.len_utf8();
            continue;
        }
        let (kind, len) = token(&source[at..]).ok_or_else(|| ParseError {
            at,
            message: format!("\"{first}\" is not the start of a number, text, name or operator"),
        })?;
        tokens.push(Token { kind, span: at..at + len });
        at += len;
    }
    tokens.push(Token { kind: Kind::End, span: at..at });
    Ok(tokens)
}

/// The first word of `rest` and its length.
fn token(rest: &str) -> Option<(Kind, usize)> {
    let first = rest.chars().next()?;
    if first.is_ascii_digit() || (first == '.' && rest[1..].starts_with(|c: char| c.is_ascii_digit())) {
        return number(rest);
    }
    if first.is_ascii_alphabetic() || first == '_' {
        let len = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(rest.len());
        return Some((Kind::Name(rest[..len].to_owned()), len));
    }
    if first == '"' || first == '\'' {
        let inner = &rest[1..];
        let len = inner.find(first)?;
        return Some((Kind::Text(inner[..len].to_owned()), len + 2));
    }
    SIGNS.iter().find(|sign| rest.starts_with(**sign)).map(|sign| (Kind::Sign(sign), sign.len()))
}

/// Digits, a point, and an exponent with its sign.
fn number(rest: &str) -> Option<(Kind, usize)> {
    let digits = |from: usize| {
        let part = rest.get(from..).unwrap_or_default();
        from + part.find(|c: char| !c.is_ascii_digit()).unwrap_or(part.len())
    };
    let mut len = digits(0);
    if rest[len..].starts_with('.') {
        len = digits(len + 1);
    }
    if rest[len..].starts_with(['e', 'E']) {
        let sign = usize::from(rest[len + 1..].starts_with(['+', '-']));
        let end = digits(len + 1 + sign);
        if end > len + 1 + sign {
            len = end;
        }
    }
    rest[..len].parse().ok().map(|value| (Kind::Number(value), len))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kinds(source: &str) -> Vec<Kind> {
        tokens(source).unwrap().into_iter().map(|token| token.kind).collect()
    }

    #[test]
    fn numbers_names_texts_and_signs() {
        assert_eq!(
            kinds("1.5e3<=.5**x_1 'a b'"),
            [
                Kind::Number(1500.0),
                Kind::Sign("<="),
                Kind::Number(0.5),
                Kind::Sign("**"),
                Kind::Name("x_1".to_owned()),
                Kind::Text("a b".to_owned()),
                Kind::End,
            ]
        );
        assert_eq!(kinds("2else"), [Kind::Number(2.0), Kind::Name("else".to_owned()), Kind::End]);
        assert_eq!(kinds("P[1:]").len(), 6);
    }

    #[test]
    fn what_is_no_word_is_told_with_its_place() {
        assert_eq!(tokens("a + §").unwrap_err().at, 4);
        assert_eq!(tokens("'open").unwrap_err().at, 0);
    }
}
