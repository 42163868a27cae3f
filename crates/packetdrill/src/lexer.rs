//! Words, numbers and signs of a script, each with its place.

use core::fmt;

use crate::script::SyntaxError;

/// A place in a script; both count from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Position {
    /// The line.
    pub line: u32,
    /// The character in the line.
    pub column: u32,
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.line, self.column)
    }
}

/// What a token is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A name: letters, digits and `_`.
    Word(String),
    /// A number as written: decimal, hexadecimal, or with a fraction.
    Number(String),
    /// What stands between double quotes.
    Text(String),
    /// What stands between backticks.
    Command,
    /// An option line: its name, and the value as written.
    Option(String, String),
    /// What stands between `%{` and `}%`.
    Code(Vec<Token>),
    /// A sign, `...` and the operators of two characters included.
    Sign(&'static str),
    /// Nothing follows.
    End,
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Word(text) | Self::Number(text) => write!(f, "`{text}`"),
            Self::Text(text) => write!(f, "\"{text}\""),
            Self::Command => f.write_str("a shell command"),
            Self::Option(name, _) => write!(f, "`--{name}`"),
            Self::Code(_) => f.write_str("`%{`"),
            Self::Sign(sign) => write!(f, "`{sign}`"),
            Self::End => f.write_str("the end"),
        }
    }
}

/// A token and where it begins and ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Token {
    pub(crate) kind: Kind,
    pub(crate) at: Position,
    /// Nothing stands between it and the token before.
    pub(crate) joined: bool,
    /// Only white space stands before it in its line.
    pub(crate) first: bool,
}

/// Signs, longer ones first.
const SIGNS: &[&str] = &[
    "...", "==", "!=", "<=", ">=", "<", ">", "(", ")", "[", "]", "{", "}", ",", ":", ";", "=", "+", "-", "*",
    "~", "|", ".", "/", "%", "!", "&",
];

/// The tokens of `text`, an [`Kind::End`] last.
pub(crate) fn tokens(text: &str) -> Result<Vec<Token>, SyntaxError> {
    let mut lexer = Lexer { rest: text, at: Position { line: 1, column: 1 }, first: true };
    lexer.run(false)
}

struct Lexer<'a> {
    rest: &'a str,
    at: Position,
    first: bool,
}

impl<'a> Lexer<'a> {
    /// Up to the end, or to `}%` if in `code`.
    fn run(&mut self, code: bool) -> Result<Vec<Token>, SyntaxError> {
        let begun = self.at;
        let mut tokens = Vec::new();
        loop {
            let gap = self.skip(code)?;
            let at = self.at;
            let joined = !gap && !tokens.is_empty();
            let first = core::mem::take(&mut self.first);
            let end = Token { kind: Kind::End, at, joined, first };
            if code && self.rest.starts_with("}%") {
                self.advance(2);
                tokens.push(end);
                return Ok(tokens);
            }
            if self.rest.is_empty() {
                if code {
                    return Err(SyntaxError::new(begun, "`%{` without `}%`"));
                }
                tokens.push(end);
                return Ok(tokens);
            }
            let kind = self.token(code, first)?;
            tokens.push(Token { kind, at, joined, first });
        }
    }

    /// Goes on by `len` bytes.
    fn advance(&mut self, len: usize) -> &'a str {
        let (taken, rest) = self.rest.split_at(len);
        for character in taken.chars() {
            if character == '\n' {
                self.at = Position { line: self.at.line + 1, column: 1 };
                self.first = true;
            } else {
                self.at.column += 1;
            }
        }
        self.rest = rest;
        taken
    }

    /// Passes white space and comments; whether there was any.
    fn skip(&mut self, code: bool) -> Result<bool, SyntaxError> {
        let mut any = false;
        loop {
            let blank = self.rest.len() - self.rest.trim_start().len();
            let len = if blank > 0 {
                blank
            } else if self.rest.starts_with('#') || (self.rest.starts_with("//") && !code) {
                self.rest.find('\n').unwrap_or(self.rest.len())
            } else if self.rest.starts_with("/*") {
                match self.rest.find("*/") {
                    Some(end) => end + 2,
                    None => return Err(SyntaxError::new(self.at, "`/*` without `*/`")),
                }
            } else {
                return Ok(any);
            };
            let at = self.at;
            self.advance(len);
            // What follows a comment in its line is not the first.
            self.first &= at.line != self.at.line || at.column == 1 || blank > 0;
            any = true;
        }
    }

    fn token(&mut self, code: bool, first: bool) -> Result<Kind, SyntaxError> {
        let rest = self.rest;
        let starts_number = |text: &str| text.starts_with(|c: char| c.is_ascii_digit());
        if first && !code && rest.starts_with("--") {
            return Ok(self.option());
        }
        if let Some(inner) = rest.strip_prefix("%{").filter(|_| !code) {
            self.advance(rest.len() - inner.len());
            return self.run(true).map(Kind::Code);
        }
        if starts_number(rest)
            || (rest.strip_prefix('.').is_some_and(starts_number) && !rest.starts_with(".."))
        {
            return Ok(self.number());
        }
        if rest.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_') {
            let len = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(rest.len());
            return Ok(Kind::Word(self.advance(len).to_owned()));
        }
        for (quote, name) in [('"', "\""), ('`', "`")] {
            if let Some(inner) = rest.strip_prefix(quote) {
                let Some(len) = inner.find(quote) else {
                    return Err(SyntaxError::new(self.at, format!("`{name}` without a second one")));
                };
                let text = inner[..len].to_owned();
                self.advance(len + 2);
                return Ok(if quote == '"' { Kind::Text(text) } else { Kind::Command });
            }
        }
        if let Some(sign) = SIGNS.iter().find(|sign| rest.starts_with(**sign)) {
            self.advance(sign.len());
            return Ok(Kind::Sign(sign));
        }
        let unknown = rest.chars().next().unwrap_or_default();
        Err(SyntaxError::new(self.at, format!("unknown character `{}`", unknown.escape_debug())))
    }

    /// A whole line: `--name=value` or `--name value`.
    fn option(&mut self) -> Kind {
        let line = self.advance(self.rest.find('\n').unwrap_or(self.rest.len()));
        let line = line.trim_start_matches("--").trim_end();
        let end = line.find(|c: char| c == '=' || c.is_whitespace()).unwrap_or(line.len());
        let (name, value) = line.split_at(end);
        let value = value.strip_prefix('=').unwrap_or(value).trim();
        Kind::Option(name.to_owned(), value.to_owned())
    }

    fn number(&mut self) -> Kind {
        let rest = self.rest;
        let digits = |text: &str| text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
        if let Some(hex) = rest.strip_prefix("0x") {
            let len = hex.find(|c: char| !c.is_ascii_hexdigit()).unwrap_or(hex.len());
            return Kind::Number(self.advance(2 + len).to_owned());
        }
        let mut len = digits(rest);
        if let Some(fraction) = rest[len..].strip_prefix('.') {
            match digits(fraction) {
                0 => {}
                more => len += 1 + more,
            }
        }
        Kind::Number(self.advance(len).to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str) -> Vec<String> {
        tokens(text).unwrap().iter().map(|token| format!("{} {}", token.at, token.kind)).collect()
    }

    #[test]
    fn a_time_range_is_no_fraction() {
        let expected = ["1:1 `0`", "1:2 `...`", "1:5 `0.3`", "1:9 `+`", "1:10 `.1`", "1:13 `~`", "1:14 `+`"];
        assert_eq!(shown("0...0.3 +.1 ~+")[..7], expected);
    }

    #[test]
    fn comments_are_passed_over_and_counted() {
        assert_eq!(shown("// a\n/* b\n c */ S. # d\n<"), ["3:7 `S`", "3:8 `.`", "4:1 `<`", "4:2 the end"]);
    }

    #[test]
    fn code_is_one_token() {
        let all = tokens("%{ a // 2 }% 1").unwrap();
        let Kind::Code(inner) = &all[0].kind else { panic!("{all:?}") };
        assert_eq!((inner.len(), all.len()), (5, 3));
    }

    #[test]
    fn an_option_is_a_line_of_its_own() {
        let all = tokens("  --set a.b = \"c\"  \n1 -- 2").unwrap();
        assert_eq!(all[0].kind, Kind::Option("set".into(), "a.b = \"c\"".into()));
        assert_eq!(all[2].kind, Kind::Sign("-"));
    }

    #[test]
    fn what_is_not_closed_is_told_where_it_opens() {
        for (text, place) in
            [("a\n /* b", "2:2"), ("\"a", "1:1"), (" %{ x", "1:4"), ("1 `a", "1:3"), ("é", "1:1")]
        {
            assert_eq!(tokens(text).unwrap_err().at.to_string(), place, "{text}");
        }
    }
}
