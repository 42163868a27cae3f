//! How numbers are written in pages.

use crate::claims::short;

/// A pattern such as `0.00`, `0 %` or `0.0 ±`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Format {
    decimals: usize,
    percent: bool,
    /// Whether the 95 % interval is written too.
    interval: bool,
}

impl Format {
    /// Reads a pattern; none if it is not one.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let (text, interval) = strip(text.trim(), "±");
        let (text, percent) = strip(text, "%");
        let decimals = match text.split_once('.') {
            None if text == "0" => 0,
            Some(("0", zeros)) if !zeros.is_empty() && zeros.bytes().all(|byte| byte == b'0') => zeros.len(),
            _ => return None,
        };
        Some(Self { decimals, percent, interval })
    }

    /// What comes before ` as `, and the patterns after it.
    pub(super) fn split(text: &str) -> Result<(&str, Vec<Self>), String> {
        let Some((before, patterns)) = text.rsplit_once(" as ") else { return Ok((text, Vec::new())) };
        let read = |pattern: &str| {
            Self::parse(pattern)
                .ok_or_else(|| format!("as {}; write 0, 0.0, 0.00, 0 % or 0.0 ±", pattern.trim()))
        };
        Ok((before.trim(), patterns.split(',').map(read).collect::<Result<_, _>>()?))
    }

    fn digits(self, value: f64) -> String {
        let value = if self.percent { 100.0 * value } else { value };
        let text = format!("{value:.*}", self.decimals);
        // What is rounded to zero has no sign.
        match text.strip_prefix('-') {
            Some(zero) if zero.bytes().all(|byte| matches!(byte, b'0' | b'.')) => zero.to_owned(),
            _ => text,
        }
    }
}

fn strip<'t>(text: &'t str, ending: &str) -> (&'t str, bool) {
    text.strip_suffix(ending).map_or((text, false), |text| (text.trim_end(), true))
}

/// A number, with its interval if the format asks for it.
pub(super) fn number(point: f64, interval: Option<(f64, f64)>, format: Option<Format>) -> String {
    let Some(format) = format else { return short(point) };
    let unit = if format.percent { " %" } else { "" };
    match interval.filter(|(low, high)| format.interval && low < high) {
        None => format!("{}{unit}", format.digits(point)),
        Some((low, high)) => {
            format!("{}{unit} ({} to {})", format.digits(point), format.digits(low), format.digits(high))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_written_as_their_pattern_says() {
        let written = |pattern| number(0.12345, Some((0.1, 0.15)), Format::parse(pattern));
        assert_eq!(written("0.00"), "0.12");
        assert_eq!(written("0"), "0");
        assert_eq!(written("0.0 %"), "12.3 %");
        assert_eq!(written("0.00 ±"), "0.12 (0.10 to 0.15)");
        assert_eq!(written("0 % ±"), "12 % (10 to 15)");
        assert_eq!(number(-0.001, None, Format::parse("0.00")), "0.00");
        assert_eq!(number(-0.01, None, Format::parse("0.00")), "-0.01");
        assert_eq!(number(1234.6, None, None), "1235");
    }

    #[test]
    fn what_is_no_pattern_is_told() {
        for text in ["", "1", "0.", "0.01", "%", ".0", "0.0.0"] {
            assert_eq!(Format::parse(text), None, "{text}");
        }
        assert!(Format::split("x as 0.5").unwrap_err().contains("as 0.5; write 0, 0.0"));
        assert_eq!(Format::split("x as 0, 0.0").unwrap().1.len(), 2);
    }
}
