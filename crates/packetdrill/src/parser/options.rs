//! Option lines at the top of a script.

use base::Duration;

use super::Reader;
use crate::lexer::{Kind, Position};
use crate::script::{Options, Setting, SyntaxError};

const ALLOWED: &str = "`--tolerance_usecs=4000`, `--ip_version=ipv4`, `--mtu=1500`, `--kernel`, `--offload`, `--preset=linux` and `--set key=value`";

pub(super) fn read(reader: &mut Reader) -> Result<Options, SyntaxError> {
    let mut options = Options::default();
    let mut preset = None;
    while let Kind::Option(name, value) = reader.kind().clone() {
        let at = reader.at();
        let wrong = |allowed: &str| {
            SyntaxError::new(at, format!("`{value}` is no value of `--{name}`; allowed is {allowed}"))
        };
        let number = |range: core::ops::RangeInclusive<u64>, what: &str| {
            value.parse().ok().filter(|it| range.contains(it)).ok_or_else(|| wrong(what))
        };
        match name.as_str() {
            "tolerance_usecs" => {
                options.tolerance =
                    Duration::from_micros(number(0..=1_000_000, "0 to 1000000 microseconds")?);
            }
            "mtu" => options.mtu = number(576..=65_535, "576 to 65535 bytes")? as u16,
            "ip_version" => {
                options.ipv6 = match value.as_str() {
                    "ipv4" => false,
                    "ipv6" => true,
                    _ => return Err(wrong("ipv4 or ipv6")),
                }
            }
            "kernel" if value.is_empty() => options.kernel = true,
            "offload" if value.is_empty() => options.offload = true,
            "kernel" | "offload" => return Err(wrong("none")),
            "preset" => preset = Some(Setting { line: format!("preset = \"{}\"", bare(&value, at)?), at }),
            "set" if value.contains('=') => options.settings.push(Setting { line: value.clone(), at }),
            "set" => return Err(wrong("`key=value`, a line of a [tcp] table, with text in quotes")),
            _ => {
                return Err(SyntaxError::new(
                    at,
                    format!("unknown option `--{name}`; allowed are {ALLOWED}"),
                ));
            }
        }
        reader.next();
    }
    let first = options.settings.first().or(preset.as_ref()).map(|it| it.at);
    if let (true, Some(at)) = (options.kernel, first) {
        let message = "the kernel takes no `--preset` and no `--set`: with `--kernel`, settings are made by `setsockopt`";
        return Err(SyntaxError::new(at, message));
    }
    let place = Position { line: 1, column: 1 };
    let preset = preset.unwrap_or_else(|| Setting { line: "preset = \"linux\"".to_owned(), at: place });
    options.settings.insert(0, preset);
    Ok(options)
}

/// A name without quotes, with or without which it may be written.
fn bare(value: &str, at: Position) -> Result<&str, SyntaxError> {
    let name = value.trim_matches('"');
    if name.is_empty() || name.contains(|c: char| !c.is_ascii_alphanumeric() && !".-".contains(c)) {
        return Err(SyntaxError::new(at, format!("`{value}` is no name of a preset")));
    }
    Ok(name)
}
