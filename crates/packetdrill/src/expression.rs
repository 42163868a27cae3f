//! What an assertion may say: integers, `TCP_INFO`'s fields, comparison, arithmetic, `and`, `or` and `not`, as in Python.

use core::fmt;

use crate::lexer::{Kind, Position};
use crate::parser::Reader;
use crate::script::SyntaxError;

/// An expression over fields.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Expression {
    /// A number.
    Number(i64),
    /// A string; it can only be said.
    Text(String),
    /// A field of `TCP_INFO`.
    Field(Field),
    /// One of the operators with two sides.
    Binary(Operator, Box<Self>, Box<Self>),
    /// Comparisons in a row: `1 <= x <= 2`.
    Compared(Box<Self>, Vec<(Operator, Self)>),
    /// `not`.
    Not(Box<Self>),
    /// A minus sign.
    Negative(Box<Self>),
}

/// An operator with two sides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Operator {
    Or,
    And,
    Equal,
    Unequal,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
    Plus,
    Minus,
    Times,
    Divided,
    Modulo,
}

macro_rules! fields {
    ($($field:ident $name:literal $meaning:literal),* $(,)?) => {
        /// A field of `TCP_INFO`; counts of segments and microseconds where the kernel has them.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Field { $(#[doc = $meaning] $field),* }

        impl Field {
            /// All fields and their names.
            pub const ALL: &[(Self, &'static str)] = &[$((Self::$field, $name)),*];
        }
    };
}

fields! {
    State "tcpi_state" "`TCP_ESTABLISHED` and so on.",
    CaState "tcpi_ca_state" "`TCP_CA_Open` and so on.",
    Retransmits "tcpi_retransmits" "Time-outs in a row without an answer.",
    Backoff "tcpi_backoff" "Doublings of the time-out.",
    Rto "tcpi_rto" "Retransmission time-out in microseconds.",
    SndMss "tcpi_snd_mss" "Bytes of a full segment.",
    Unacked "tcpi_unacked" "Segments sent and not cumulatively acknowledged.",
    Sacked "tcpi_sacked" "Of these, selectively acknowledged.",
    Lost "tcpi_lost" "Of these, deemed lost.",
    Retrans "tcpi_retrans" "Of these, sent again.",
    Rtt "tcpi_rtt" "Smoothed round-trip time in microseconds.",
    RttVar "tcpi_rttvar" "Its variation in microseconds.",
    SndSsthresh "tcpi_snd_ssthresh" "Slow start threshold in segments; 2147483647 if there is none.",
    SndCwnd "tcpi_snd_cwnd" "Congestion window in segments.",
    TotalRetrans "tcpi_total_retrans" "Segments sent again so far.",
    BytesAcked "tcpi_bytes_acked" "Bytes that the peer acknowledged.",
    BytesReceived "tcpi_bytes_received" "Bytes received in order.",
    NotsentBytes "tcpi_notsent_bytes" "Bytes written and never sent.",
    MinRtt "tcpi_min_rtt" "Least round-trip time in microseconds.",
    BytesRetrans "tcpi_bytes_retrans" "Bytes sent again so far.",
    DsackDups "tcpi_dsack_dups" "Reports of data that came twice.",
    SndWnd "tcpi_snd_wnd" "The peer's window in bytes.",
}

/// Names of numbers.
const CONSTANTS: &[(&str, i64)] = &[
    ("TCP_CA_Open", 0),
    ("TCP_CA_Disorder", 1),
    ("TCP_CA_CWR", 2),
    ("TCP_CA_Recovery", 3),
    ("TCP_CA_Loss", 4),
    ("TCP_ESTABLISHED", 1),
    ("TCP_SYN_SENT", 2),
    ("TCP_SYN_RECV", 3),
    ("TCP_FIN_WAIT1", 4),
    ("TCP_FIN_WAIT2", 5),
    ("TCP_TIME_WAIT", 6),
    ("TCP_CLOSE", 7),
    ("TCP_CLOSE_WAIT", 8),
    ("TCP_LAST_ACK", 9),
    ("TCP_LISTEN", 10),
    ("TCP_CLOSING", 11),
    ("TCP_INFINITE_SSTHRESH", 0x7fff_ffff),
    ("True", 1),
    ("False", 0),
];

impl Field {
    /// Its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        Self::ALL.iter().find(|(field, _)| *field == self).map_or("", |(_, name)| name)
    }
}

impl Expression {
    /// Its value, where `field` tells each field's. A truth is 1 or 0.
    pub(crate) fn value(&self, field: &mut dyn FnMut(Field) -> Result<i64, String>) -> Result<i64, String> {
        match self {
            Self::Number(number) => Ok(*number),
            Self::Text(_) => Ok(1),
            Self::Field(name) => field(*name),
            Self::Not(of) => Ok(i64::from(of.value(field)? == 0)),
            Self::Negative(of) => of.value(field)?.checked_neg().ok_or_else(overflow),
            Self::Compared(first, rest) => {
                let mut left = first.value(field)?;
                for (operator, right) in rest {
                    let right = right.value(field)?;
                    if operator.apply(left, right)? == 0 {
                        return Ok(0);
                    }
                    left = right;
                }
                Ok(1)
            }
            Self::Binary(operator, left, right) => {
                let left = left.value(field)?;
                match operator {
                    Operator::And if left == 0 => Ok(left),
                    Operator::Or if left != 0 => Ok(left),
                    Operator::And | Operator::Or => right.value(field),
                    _ => operator.apply(left, right.value(field)?),
                }
            }
        }
    }

    /// The fields in it, each once.
    pub(crate) fn fields(&self) -> Vec<Field> {
        let mut found = Vec::new();
        self.collect(&mut found);
        found.dedup();
        found
    }

    fn collect(&self, found: &mut Vec<Field>) {
        match self {
            Self::Number(_) | Self::Text(_) => {}
            Self::Field(field) => found.push(*field),
            Self::Not(of) | Self::Negative(of) => of.collect(found),
            Self::Binary(_, left, right) => {
                left.collect(found);
                right.collect(found);
            }
            Self::Compared(first, rest) => {
                first.collect(found);
                rest.iter().for_each(|(_, it)| it.collect(found));
            }
        }
    }

    /// Reads one.
    pub(crate) fn read(reader: &mut Reader) -> Result<Self, SyntaxError> {
        reader.deeper(|reader| Self::read_level(reader, 0))
    }

    /// One whose operators bind as those of this level of [`LEVELS`] or more.
    fn read_level(reader: &mut Reader, level: usize) -> Result<Self, SyntaxError> {
        let Some(operators) = LEVELS.get(level) else { return Self::read_single(reader) };
        let mut left = Self::read_level(reader, level + 1)?;
        while let Some(operator) = Operator::read(reader, operators) {
            let right = Self::read_level(reader, level + 1)?;
            left = match left {
                Self::Compared(first, mut rest) if level == COMPARISONS => {
                    rest.push((operator, right));
                    Self::Compared(first, rest)
                }
                left if level == COMPARISONS => Self::Compared(Box::new(left), vec![(operator, right)]),
                left => Self::Binary(operator, Box::new(left), Box::new(right)),
            };
        }
        Ok(left)
    }

    fn read_single(reader: &mut Reader) -> Result<Self, SyntaxError> {
        let at = reader.at();
        match reader.kind().clone() {
            Kind::Number(_) => reader.whole(i64::MAX as u64).map(|number| Self::Number(number as i64)),
            Kind::Text(text) => {
                reader.next();
                Ok(Self::Text(text))
            }
            Kind::Sign("-") => {
                reader.next();
                reader.deeper(Self::read_single).map(|it| Self::Negative(Box::new(it)))
            }
            Kind::Sign("(") => {
                reader.next();
                let inner = Self::read(reader)?;
                reader.sign(")")?;
                Ok(inner)
            }
            Kind::Word(name) if name == "not" => {
                reader.next();
                // It binds less than comparisons.
                reader.deeper(|it| Self::read_level(it, COMPARISONS)).map(|it| Self::Not(Box::new(it)))
            }
            Kind::Word(name) => {
                reader.next();
                Self::named(&name, at)
            }
            _ => Err(reader.unexpected("a number, a field of TCP_INFO, `not`, `-` or `(`")),
        }
    }

    fn named(name: &str, at: Position) -> Result<Self, SyntaxError> {
        if let Some((field, _)) = Field::ALL.iter().find(|(_, known)| *known == name) {
            return Ok(Self::Field(*field));
        }
        if let Some((_, value)) = CONSTANTS.iter().find(|(known, _)| *known == name) {
            return Ok(Self::Number(*value));
        }
        let fields = Field::ALL.iter().map(|(_, name)| *name);
        let names: Vec<&str> = fields.chain(CONSTANTS.iter().map(|(name, _)| *name)).collect();
        Err(SyntaxError::new(at, format!("unknown name `{name}`; allowed are {}", names.join(", "))))
    }
}

/// Where in [`LEVELS`] comparisons stand.
const COMPARISONS: usize = 2;

/// Operators, those that bind least first.
const LEVELS: [&[(&str, Operator)]; 5] = [
    &[("or", Operator::Or)],
    &[("and", Operator::And)],
    &[
        ("==", Operator::Equal),
        ("!=", Operator::Unequal),
        ("<=", Operator::LessOrEqual),
        (">=", Operator::GreaterOrEqual),
        ("<", Operator::Less),
        (">", Operator::Greater),
    ],
    &[("+", Operator::Plus), ("-", Operator::Minus)],
    &[("*", Operator::Times), ("/", Operator::Divided), ("%", Operator::Modulo)],
];

impl Operator {
    fn read(reader: &mut Reader, among: &[(&str, Self)]) -> Option<Self> {
        let found = match reader.kind() {
            Kind::Sign(sign) => among.iter().find(|(known, _)| known == sign),
            Kind::Word(word) => among.iter().find(|(known, _)| known == word),
            _ => None,
        };
        let (sign, operator) = *found?;
        if sign == "/" {
            // Integers alone: `//` of Python.
            if !reader.is_followed_by("/") {
                return None;
            }
            reader.next();
        }
        reader.next();
        Some(operator)
    }

    fn apply(self, left: i64, right: i64) -> Result<i64, String> {
        let result = match self {
            Self::Equal => Some(i64::from(left == right)),
            Self::Unequal => Some(i64::from(left != right)),
            Self::Less => Some(i64::from(left < right)),
            Self::LessOrEqual => Some(i64::from(left <= right)),
            Self::Greater => Some(i64::from(left > right)),
            Self::GreaterOrEqual => Some(i64::from(left >= right)),
            Self::Plus => left.checked_add(right),
            Self::Minus => left.checked_sub(right),
            Self::Times => left.checked_mul(right),
            Self::Divided | Self::Modulo if right == 0 => return Err("division by zero".to_owned()),
            Self::Divided => left.checked_div_euclid(right),
            Self::Modulo => left.checked_rem_euclid(right),
            Self::And | Self::Or => Some(0),
        };
        result.ok_or_else(overflow)
    }
}

fn overflow() -> String {
    "a number beyond 64 bits".to_owned()
}

impl fmt::Display for Field {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lexer::tokens;

    fn value(text: &str) -> Result<i64, String> {
        let Kind::Code(inner) = tokens(&format!("%{{{text}}}%")).unwrap().remove(0).kind else { panic!() };
        let mut reader = Reader::new(inner);
        let read = Expression::read(&mut reader).map_err(|error| error.to_string())?;
        assert_eq!(*reader.kind(), Kind::End, "{text}");
        read.value(&mut |field| Ok(if field == Field::SndCwnd { 10 } else { 3 }))
    }

    #[test]
    fn operators_bind_as_in_python() {
        for (text, expected) in [
            ("1 + 2 * 3", 7),
            ("(1 + 2) * 3", 9),
            ("7 // 2 % 2", 1),
            ("-2 + 5", 3),
            ("1 < 2 < 3", 1),
            ("1 < 3 < 3", 0),
            ("not 1 == 2", 1),
            ("not 1 == 2 and 0", 0),
            ("0 and 1 or 4", 4),
            ("tcpi_snd_cwnd == 10 and tcpi_sacked <= 3", 1),
            ("TCP_CA_Recovery == tcpi_ca_state", 1),
            ("10 - 3 - 2", 5),
        ] {
            assert_eq!(value(text), Ok(expected), "{text}");
        }
    }

    #[test]
    fn what_has_no_value_is_an_error() {
        assert_eq!(value("1 // 0"), Err("division by zero".into()));
        assert_eq!(value("9223372036854775807 + 1"), Err("a number beyond 64 bits".into()));
        assert!(value(&"(".repeat(1000)).unwrap_err().contains("too deep"));
        assert!(
            value("tcpi_cwnd")
                .unwrap_err()
                .starts_with("1:3: unknown name `tcpi_cwnd`; allowed are tcpi_state")
        );
    }
}
