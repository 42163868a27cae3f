//! What a sweep of a scenario shows: goodput beside its bound, and how long what applications wait for takes.

use core::fmt::Write as _;

use base::Rate;
use toml::{Table, Value as Toml};

use super::super::axis::{Axis, rate_unit};
use super::quoted;

/// What is shown of a sweep.
pub(super) struct Shown<'a> {
    quantities: Vec<Quantity>,
    has_schemes: bool,
    axes: &'a [(&'a str, &'a [Toml])],
    /// The coordinates, as expressions name them.
    at: String,
}

/// Something with a table, and perhaps a figure.
struct Quantity {
    /// What the figure's files are called; without a figure, empty.
    id: String,
    what: String,
    unit: &'static str,
    value: String,
    bound: Option<String>,
    /// It may never happen.
    is_time: bool,
}

/// Transfers, sources and transactions with a figure of their own, at most: a fleet's are too many to look at.
const MOST: usize = 4;
/// Panels of a figure, at most, bars of a group for each scheme, and lines that an axis tells apart.
const MOST_PANELS: usize = 12;
const MOST_BARS: usize = 4;
const MOST_LINES: usize = 8;

impl<'a> Shown<'a> {
    /// Of the scenario over these axes, each with its values.
    pub(super) fn of(scenario: &Table, has_schemes: bool, axes: &'a [(&'a str, &'a [Toml])]) -> Self {
        let names = has_schemes.then_some("scheme").into_iter().chain(axes.iter().map(|(name, _)| *name));
        let at = names.collect::<Vec<_>>().join(", ");
        let mut shown = Self { quantities: Vec::new(), has_schemes, axes, at };
        shown.add_goodput(scenario);
        for (name, traffic) in scenario.get("traffic").and_then(Toml::as_table).into_iter().flatten() {
            let kind = |kind: &str| traffic.get(kind).and_then(Toml::as_table);
            if let Some(bulk) = kind("bulk").filter(|bulk| bulk.contains_key("size")) {
                let is_one = bulk.get("connections").is_none_or(|count| count.as_integer() == Some(1));
                let value = if is_one {
                    shown.call("seconds", name, ", 1")
                } else {
                    shown.call("group_seconds", name, "")
                };
                shown.add_time("time", name, (format!("time of {name}"), "s"), value);
            } else if kind("rate").is_some() {
                let mean = format!("1e3 * {}", shown.call("L", name, ""));
                shown.add_time("latency", name, (format!("mean latency of {name}"), "ms"), mean);
                let late = format!("1e3 * {}", shown.call("L_99", name, ""));
                shown.add_time("latency-99", name, (format!("latency of {name} that 99 % keep"), "ms"), late);
            } else if kind("transactions").is_some() {
                let median = format!("1e3 * {}", shown.call("transaction_median", name, ""));
                shown.add_time("transaction", name, (format!("median time of {name}"), "ms"), median);
            }
        }
        shown
    }

    fn add_goodput(&mut self, scenario: &Table) {
        let links = scenario.get("link").and_then(Toml::as_table).into_iter().flatten();
        let rates = links.filter_map(|(_, link)| link.get("channel")?.get("rate")?.as_str()?.parse().ok());
        let swept =
            self.axes.iter().flat_map(|(_, values)| *values).filter_map(|value| value.as_str()?.parse().ok());
        // In the unit of the slowest, which is what goodput comes near to.
        let slowest = rates.chain(swept).min_by_key(|rate: &Rate| rate.as_bps());
        let (one, unit) = rate_unit(slowest.into_iter());
        let call = |quantity: &str| {
            if self.at.is_empty() { quantity.to_owned() } else { format!("{quantity}({})", self.at) }
        };
        let (goodput, bound) = (call("goodput"), call("bound"));
        self.quantities.push(Quantity {
            id: "goodput".to_owned(),
            what: "goodput".to_owned(),
            unit,
            value: format!("{goodput} / {one:e}"),
            bound: Some(format!("{bound} / {one:e}")),
            is_time: false,
        });
        self.quantities.push(Quantity {
            id: String::new(),
            what: "goodput / bound".to_owned(),
            unit: "%",
            value: format!("100 * {goodput} / {bound}"),
            bound: None,
            is_time: false,
        });
    }

    /// A call of a quantity of the traffic called `name`.
    fn call(&self, quantity: &str, name: &str, more: &str) -> String {
        let at = if self.at.is_empty() { String::new() } else { format!("{}, ", self.at) };
        format!("{quantity}({at}'{name}'{more})")
    }

    fn add_time(&mut self, id: &str, name: &str, (what, unit): (String, &'static str), value: String) {
        if self.quantities.iter().filter(|quantity| quantity.is_time).count() < MOST {
            let id = format!("{id}-{name}");
            self.quantities.push(Quantity { id, what, unit, value, bound: None, is_time: true });
        }
    }

    /// The tables and figures as a study says them.
    pub(super) fn to_toml(&self) -> String {
        let mut text = String::new();
        let mut rows: Vec<&str> = self.has_schemes.then_some("scheme").into_iter().collect();
        rows.extend(self.axes.iter().map(|(name, _)| *name));
        for quantity in &self.quantities {
            let _ = writeln!(
                text,
                "[[table]]\nid = {}\nfrom = \"sweep\"\nrows = {}\nvalue = {}",
                quoted(&format!("{}, {}", quantity.what, quantity.unit)),
                names(&rows),
                quoted(&quantity.value)
            );
            if quantity.is_time {
                text += "never = \"never\"\n";
            }
        }
        if let Ok(form) = self.figure_form() {
            for quantity in self.quantities.iter().filter(|quantity| !quantity.id.is_empty()) {
                let _ = writeln!(
                    text,
                    "[[figure]]\nid = {}\ntitle = {}\nfrom = \"sweep\"\n{form}y = {}\ny-axis = {{ label = {} }}",
                    quoted(&quantity.id),
                    quoted(&quantity.what),
                    quoted(&quantity.value),
                    quoted(&format!("{} ({})", quantity.what, quantity.unit))
                );
                if let Some(bound) = quantity.bound.as_ref().filter(|_| !form.contains(HEAT)) {
                    let _ = writeln!(text, "bound = {}", quoted(bound));
                }
            }
        }
        text
    }

    /// Why nothing is drawn, if nothing is.
    pub(super) fn why_undrawn(&self) -> Option<String> {
        self.figure_form().err()
    }

    /// How it is drawn: along the first axis of numbers, a line for each scheme, and a panel for each combination of the other axes; a heat
    /// map over two axes without schemes where there would be too many lines; bars where there are no numbers. What would be too many to
    /// look at is in the tables alone, and what is said then is why.
    fn figure_form(&self) -> Result<String, String> {
        let is_scale = |(_, values): &&(&str, &[Toml])| {
            values.len() > 1
                && Axis::read("x", &Toml::Array(values.to_vec())).is_ok_and(|axis| axis.scale().is_some())
        };
        let schemes = || self.has_schemes.then_some("scheme");
        let Some((x, _)) = self.axes.iter().find(is_scale).or(self.axes.first()) else {
            let bars = |x| format!("kind = \"bars\"\nx = \"{x}\"\n");
            return schemes().map(bars).ok_or_else(|| "There is no figure of a single value.".to_owned());
        };
        let others: Vec<_> = self.axes.iter().filter(|(name, _)| name != x).collect();
        let mut curve: Vec<&str> = schemes().into_iter().collect();
        curve.extend(others.iter().map(|(name, _)| *name));
        // Without schemes the first of the others tells the lines apart.
        let panels: usize =
            others.iter().skip(usize::from(!self.has_schemes)).map(|(_, values)| values.len()).product();
        // The schemes are in the file.
        let bars: usize =
            panels * others.first().map_or(1, |(_, values)| if self.has_schemes { 1 } else { values.len() });
        let is_numbers = self.axes.iter().any(|axis| is_scale(&axis));
        let undrawn = |what: &str, count: usize, most: usize| {
            Err(format!(
                "There are no figures: the axes beside \"{x}\" would take {count} {what}, and more than {most} cannot be \
                 looked at. The tables and files have it all."
            ))
        };
        let curve_values = others.first().map_or(1, |(_, values)| values.len());
        let kind = match (is_numbers, &curve[..]) {
            (true, [_]) if !self.has_schemes && curve_values > MOST_LINES => HEAT,
            (true, [] | [_]) => "kind = \"lines\"",
            (true, _) if panels <= MOST_PANELS => "kind = \"panels\"",
            (true, _) => return undrawn("panels", panels, MOST_PANELS),
            (false, _) if bars <= MOST_BARS => "kind = \"bars\"",
            (false, _) => return undrawn("bars beside each other", bars, MOST_BARS),
        };
        Ok(format!("{kind}\nx = \"{x}\"\ncurve = {}\n", names(&curve)))
    }
}

/// A colour for each pair of values.
const HEAT: &str = "kind = \"heat\"";

fn names(all: &[&str]) -> String {
    format!("[{}]", all.iter().map(|name| quoted(name)).collect::<Vec<_>>().join(", "))
}
