//! Laying one set of keys over another: schemes, and `--set key=value`.

use core::fmt;
use core::str::FromStr;

use base::config::Settings as _;
use tcp::TcpConfig;
use toml::{Table, Value};

use super::Scheme;

/// One `key=value` of the command line: a dotted path and a TOML value.
#[derive(Clone, Debug, PartialEq)]
pub struct Override {
    /// The value at the end of its path.
    pub(super) set: Table,
}

/// A text that is not `key=value`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("\"{0}\" is not key=value, as in link.satellite.channel.delay=\"100 ms\"")]
pub struct NotAnOverride(String);

impl FromStr for Override {
    type Err = NotAnOverride;

    /// Reads `key=value`. A value that is not TOML is taken as a text, so that `delay=100 ms` needs no quotes.
    fn from_str(text: &str) -> Result<Self, NotAnOverride> {
        let wrong = || NotAnOverride(text.to_owned());
        let (key, value) = text.split_once('=').ok_or_else(wrong)?;
        let value = value.trim();
        let parsed = toml::from_str::<Table>(&format!("value = {value}"));
        let value = parsed.ok().and_then(|mut t| t.remove("value")).unwrap_or_else(|| value.into());
        Self::at(key, value).ok_or_else(wrong)
    }
}

impl Override {
    /// Sets a dotted path to a value; none if a part of the path is empty.
    #[must_use]
    pub fn at(path: &str, value: Value) -> Option<Self> {
        let mut set = value;
        for part in path.split('.').rev().map(str::trim) {
            if part.is_empty() {
                return None;
            }
            set = Value::Table(Table::from_iter([(part.to_owned(), set)]));
        }
        let Value::Table(set) = set else { return None };
        Some(Self { set })
    }

    /// Sets a key at the top of the scenario to a number.
    ///
    /// # Panics
    /// If the number does not fit TOML's 63 bits.
    #[must_use]
    pub fn new(key: &str, value: u64) -> Self {
        let value = i64::try_from(value).expect("a number below 2^63");
        Self { set: Table::from_iter([(key.to_owned(), Value::Integer(value))]) }
    }
}

/// Writes `key=value`, as it is read.
impl fmt::Display for Override {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut table = &self.set;
        loop {
            let Some((key, value)) = table.iter().next() else { return Ok(()) };
            match value {
                Value::Table(inner) if inner.len() == 1 => {
                    write!(f, "{key}.")?;
                    table = inner;
                }
                value => return write!(f, "{key}={value}"),
            }
        }
    }
}

/// `table` with all of `overrides` laid over it, one after the other.
pub(crate) fn with(table: &Table, overrides: &[Override]) -> Table {
    let mut laid = table.clone();
    overrides.iter().for_each(|change| lay_over(&mut laid, &change.set));
    laid
}

/// Why `overrides` make no scenario of `written`: those to blame, and what is wrong. `works` tells whether some of them make one.
pub(super) fn explain(
    written: &Table,
    overrides: &[Override],
    works: impl Fn(&[Override]) -> bool,
    message: String,
) -> String {
    let without = |place: usize| {
        let (before, after) = (&overrides[..place], &overrides[place + 1..]);
        [before, after].concat()
    };
    let blamed = |place: &usize| works(&without(*place));
    let mut to_blame: Vec<&Override> =
        (0..overrides.len()).filter(blamed).map(|place| &overrides[place]).collect();
    if to_blame.is_empty() {
        to_blame.extend(overrides);
    }
    let unknown = to_blame.iter().find_map(|change| unknown_name(written, &change.set, &message));
    let message = unknown.unwrap_or(message);
    let said: Vec<String> = to_blame.iter().map(|change| format!("--set '{change}'")).collect();
    format!("with {}: {message}", said.join(" "))
}

/// What is wrong, in other words, where a set of keys names a link, traffic or network with bandwidth on demand that the scenario does
/// not have. Whoever adds one sets all of its keys; whoever misspells one sets some, and `message` misses the others.
pub(super) fn unknown_name(scenario: &Table, set: &Table, message: &str) -> Option<String> {
    let unknown = unknown(scenario, set)?;
    Some(if message.starts_with("missing key") { unknown } else { format!("{message} ({unknown})") })
}

fn unknown(scenario: &Table, set: &Table) -> Option<String> {
    ["link", "traffic", "dama"].into_iter().find_map(|section| {
        let names = |table: &'_ Table| -> Vec<String> {
            table
                .get(section)
                .and_then(Value::as_table)
                .map_or_else(Vec::new, |named| named.keys().cloned().collect())
        };
        let known = names(scenario);
        let unknown = names(set).into_iter().find(|name| !known.contains(name))?;
        Some(match known.is_empty() {
            true => format!("no {section} \"{unknown}\"; the scenario has none"),
            false => format!("no {section} \"{unknown}\"; the scenario has {}", known.join(", ")),
        })
    })
}

/// An override, and the schemes in which it changes nothing because they set the same key.
#[derive(Clone, Debug, PartialEq)]
pub struct Ineffective {
    /// The override.
    pub set: Override,
    /// The schemes' names.
    pub schemes: Vec<String>,
}

/// Says it as a notice.
impl fmt::Display for Ineffective {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let schemes: Vec<String> = self.schemes.iter().map(|name| format!("\"{name}\"")).collect();
        let (them, who) = match schemes.len() {
            1 => ("scheme", "which sets that key itself"),
            _ => ("schemes", "which set that key themselves"),
        };
        write!(f, "--set '{}' changes nothing in {them} {}, {who}", self.set, schemes.join(", "))
    }
}

/// The overrides that some schemes undo.
pub(super) fn ineffective(written: &Table, overrides: &[Override], schemes: &[Scheme]) -> Vec<Ineffective> {
    let all = with(written, overrides);
    let of = |(place, set): (usize, &Override)| {
        let mut others = overrides.to_vec();
        others.remove(place);
        let without = with(written, &others);
        let is_undone = |scheme: &&Scheme| {
            let [mut with, mut without] = [all.clone(), without.clone()];
            lay_over(&mut with, &scheme.set);
            lay_over(&mut without, &scheme.set);
            with == without
        };
        let undone = schemes.iter().filter(is_undone).map(|scheme| scheme.name.clone());
        let schemes: Vec<String> = if all == without { Vec::new() } else { undone.collect() };
        (!schemes.is_empty()).then(|| Ineffective { set: set.clone(), schemes })
    };
    overrides.iter().enumerate().filter_map(of).collect()
}

/// Lays `over` over `base`: tables merge, anything else replaces.
pub(crate) fn lay_over(base: &mut Table, over: &Table) {
    merge(base, over, &mut Vec::new());
}

fn merge<'a>(base: &mut Table, over: &'a Table, path: &mut Vec<&'a str>) {
    for (key, value) in over {
        path.push(key);
        match (base.get_mut(key), value) {
            // Its tables have short forms.
            (Some(Value::Table(below)), Value::Table(above)) if path[..] == ["tcp"] => {
                TcpConfig::DIALECT.lay_over(below, above);
            }
            (Some(Value::Table(below)), Value::Table(above))
                if !is_choice(path) || below.keys().eq(above.keys()) =>
            {
                merge(below, above, path);
            }
            _ => {
                base.insert(key.clone(), value.clone());
            }
        }
        path.pop();
    }
}

/// Whether the value there is one of several alternatives, of which another one replaces it whole.
fn is_choice(path: &[&str]) -> bool {
    matches!(
        path,
        ["link", _, "protocol" | "queue"] | ["link", _, "channel", "errors" | "up-errors"] | ["traffic", _]
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(text: &str) -> Table {
        toml::from_str(text).unwrap()
    }

    #[test]
    fn a_path_is_set_wherever_it_leads() {
        let mut scenario = table("seed = 1\n[link.satellite]\ndelay = \"250 ms\"");
        for change in
            ["seed=7", "link.satellite.delay=100 ms", "link.satellite.channel.errors.erasure.probability=0.1"]
        {
            lay_over(&mut scenario, &change.parse::<Override>().unwrap().set);
        }
        let expected = "seed = 7\n[link.satellite]\ndelay = \"100 ms\"\nchannel.errors = { erasure = { probability = 0.1 } }";
        assert_eq!(scenario, table(expected));
        let change: Override = "link.satellite.delay=100 ms".parse().unwrap();
        assert_eq!(change.to_string(), "link.satellite.delay=\"100 ms\"");
        assert_eq!(change.to_string().parse(), Ok(change));
        for wrong in ["seed", "a..b=1", "=1"] {
            assert_eq!(wrong.parse::<Override>(), Err(NotAnOverride(wrong.to_owned())));
        }
    }

    #[test]
    fn tables_merge_and_alternatives_replace_each_other() {
        let erasure = "errors = { erasure = { probability = 0.1 } }";
        let bits = "errors = { bit-errors = { ber = 1e-5 } }";
        let mut base = table(&format!("[link.a.channel]\nrate = 1\n{erasure}\n[link.errors]\nrate = 2"));
        lay_over(&mut base, &table(&format!("[link.a.channel]\nrate = 3\n{bits}\n[link.errors]\ndelay = 1")));
        let expected = format!("[link.a.channel]\nrate = 3\n{bits}\n[link.errors]\nrate = 2\ndelay = 1");
        assert_eq!(base, table(&expected));
        lay_over(&mut base, &table("link.a.channel.errors.bit-errors.ber = 1e-6"));
        assert_eq!(base["link"]["a"]["channel"]["errors"]["bit-errors"]["ber"].as_float(), Some(1e-6));
    }

    #[test]
    fn a_tables_short_form_is_one_of_its_keys() {
        let mut base =
            table("[tcp]\nrecovery = \"sack\"\ncongestion = { vegas = { alpha = 1 } }\nrto.min = \"1 s\"");
        for change in [
            "tcp.recovery.reduction=prr",
            "tcp.rto.max=9 s",
            "tcp.congestion.fast.alpha=7",
            "tcp.recovery=rack",
            "tcp.sharing=stcp",
            "tcp.sharing.decay=false",
        ] {
            lay_over(&mut base, &change.parse::<Override>().unwrap().set);
        }
        let expected = "[tcp]\nrecovery = { scheme = \"rack\", reduction = \"prr\" }\n\
            congestion = { fast = { alpha = 7 } }\nrto = { min = \"1 s\", max = \"9 s\" }\n\
            sharing = { policy = \"stcp\", decay = false }";
        assert_eq!(base, table(expected));
    }
}
