//! How near tables come to the paper: in size, and in order.

use std::collections::BTreeMap;

use serde::Serialize;

use super::summary::Cell;

/// How many of the cells that the paper prints a value for are within 10, 20 and 50 % of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Agreement {
    /// The table.
    pub table: String,
    /// Which of its cells: an axis and a value on it; none for all.
    pub group: Option<(String, String)>,
    /// How many there are.
    pub cells: usize,
    /// Of those, within 10, 20 and 50 %.
    pub within: [usize; 3],
    /// How often the order is the paper's, where the table asks.
    pub order: Option<Order>,
}

/// How often cells that stand side by side are in the paper's order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Order {
    /// Sets of cells whose neighbours the paper separates by more than 2 %.
    pub sets: usize,
    /// Of those, how many are in its order throughout.
    pub sets_kept: usize,
    /// Pairs of cells of any set that the paper separates by more than 2 %.
    pub pairs: usize,
    /// Of those, how many are in its order.
    pub pairs_kept: usize,
}

/// Paper and ours of cells that stand side by side.
type Set = Vec<(f64, f64)>;
/// An axis and a value on it.
type Place<'a> = (&'a str, &'a str);
/// A table, and which of its cells.
type Group<'a> = (&'a str, Option<Place<'a>>);

const LIMITS: [f64; 3] = [0.1, 0.2, 0.5];
/// Tables with fewer printed values speak for themselves. Ours.
const FEWEST: usize = 12;
/// What separates two values that are not as good as equal. Ours.
const APART: f64 = 1.02;

/// How near tables come to the paper, as a whole and by the values on their axes; cells that differ on the axes that `side_by_side` names for
/// their table are compared in order.
pub(super) fn agreements(cells: &[Cell], side_by_side: &BTreeMap<&str, &[String]>) -> Vec<Agreement> {
    let mut groups: BTreeMap<Group<'_>, Vec<&Cell>> = BTreeMap::new();
    for cell in cells {
        let of_axes = cell.row.iter().map(|(axis, value)| Some((axis.as_str(), value.as_str())));
        for group in core::iter::once(None).chain(of_axes) {
            groups.entry((cell.table.as_str(), group)).or_default().push(cell);
        }
    }
    let printed = |cells: &[&Cell]| cells.iter().filter(|cell| cell.paper.is_some()).count();
    let many = |table: &str| groups.get(&(table, None)).is_some_and(|cells| printed(cells) >= FEWEST);
    let agreement = |(&(table, group), cells): (&Group<'_>, &Vec<&Cell>)| {
        // What is printed and was not measured is as far off as can be.
        let off = |cell: &&Cell| Some((cell.ours.unwrap_or(f64::INFINITY) / cell.paper? - 1.0).abs());
        let offs: Vec<f64> = cells.iter().filter_map(off).collect();
        let axes = side_by_side.get(table).copied().unwrap_or_default();
        let is_side = |(axis, _): Place<'_>| axes.iter().any(|side| side == axis);
        // What is compared side by side is not told apart by one of its own axes.
        let ordered = !axes.is_empty() && !group.is_some_and(is_side);
        Agreement {
            table: table.to_owned(),
            group: group.map(|(axis, value)| (axis.to_owned(), value.to_owned())),
            cells: offs.len(),
            within: LIMITS.map(|limit| offs.iter().filter(|off| **off <= limit).count()),
            order: ordered.then(|| order(&sets(cells, axes))),
        }
    };
    groups.iter().filter(|((table, _), _)| many(table)).map(agreement).collect()
}

/// The cells that differ on these axes alone, where the paper prints all.
fn sets(cells: &[&Cell], axes: &[String]) -> Vec<Set> {
    let mut sets: BTreeMap<Vec<Place<'_>>, Vec<Option<(f64, f64)>>> = BTreeMap::new();
    for cell in cells {
        let others = cell.row.iter().filter(|(axis, _)| !axes.contains(axis));
        let key = others.map(|(axis, value)| (axis.as_str(), value.as_str())).collect();
        sets.entry(key)
            .or_default()
            .push(cell.paper.map(|paper| (paper, cell.ours.unwrap_or(f64::INFINITY))));
    }
    sets.into_values().filter_map(|set| set.into_iter().collect()).collect()
}

fn order(sets: &[Set]) -> Order {
    let mut order = Order::default();
    for set in sets {
        let mut sorted = set.clone();
        sorted.sort_by(|a, b| a.0.total_cmp(&b.0));
        if sorted.windows(2).all(|pair| pair[1].0 / pair[0].0 > APART) {
            order.sets += 1;
            order.sets_kept += usize::from(sorted.windows(2).all(|pair| pair[0].1 < pair[1].1));
        }
        for (place, low) in sorted.iter().enumerate() {
            for high in sorted[place + 1..].iter().filter(|high| high.0 / low.0 > APART) {
                order.pairs += 1;
                order.pairs_kept += usize::from(low.1 < high.1);
            }
        }
    }
    order
}

/// The whole tables' agreement in a line each, for the terminal.
pub(super) fn lines(agreements: &[Agreement]) -> String {
    let whole = agreements.iter().filter(|agreement| agreement.group.is_none());
    let line = |Agreement { table, cells, within: [ten, twenty, fifty], order, .. }: &Agreement| {
        let order = order.map_or_else(String::new, |order| {
            format!(
                "; ranked as in the paper: {} of {} sets, {} of {} pairs",
                order.sets_kept, order.sets, order.pairs_kept, order.pairs
            )
        });
        format!(
            "table {table}: {ten} of {cells} cells are within 10 % of the paper, {twenty} within 20 %, {fifty} within 50 %{order}\n"
        )
    };
    whole.map(line).collect()
}

/// A table's agreement as Markdown: as a whole, then by the values on its axes.
pub(super) fn markdown(agreements: &[Agreement], table: &str) -> Result<String, String> {
    let own = || agreements.iter().filter(|agreement| agreement.table == table);
    let has_order = own().any(|agreement| agreement.order.is_some());
    let more = if has_order {
        " sets in the paper's order | pairs |\n|---|---|---|---|---|---|---|\n"
    } else {
        "\n|---|---|---|---|---|\n"
    };
    let mut text = format!("| cells | | within 10 % | 20 % | 50 % |{more}");
    let mut any = false;
    for Agreement { group, cells, within: [ten, twenty, fifty], order, .. } in own() {
        any = true;
        let name = group.as_ref().map_or("all".to_owned(), |(axis, value)| format!("{axis} {value}"));
        text += &format!("| {} | {cells} | {ten} | {twenty} | {fifty} |", super::markdown::cell(&name));
        text += &match (order, has_order) {
            (Some(order), _) => {
                format!(
                    " {} of {} | {} of {} |\n",
                    order.sets_kept, order.sets, order.pairs_kept, order.pairs
                )
            }
            (None, true) => " | |\n".to_owned(),
            (None, false) => "\n".to_owned(),
        };
    }
    match any {
        true => Ok(text),
        false => Err(format!("table \"{table}\" has too few printed values for an agreement")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cell(row: &[(&str, &str)], paper: Option<f64>, ours: f64) -> Cell {
        let row = row.iter().map(|(axis, value)| ((*axis).to_owned(), (*value).to_owned())).collect();
        Cell { paper, ours: Some(ours), ..Cell::empty("t", row) }
    }

    /// A cell that never finished counts as a miss, in size and in order.
    #[test]
    fn what_is_printed_and_never_ended_counts() {
        let mut cells: Vec<Cell> =
            (0..12).map(|a| cell(&[("a", &a.to_string()), ("b", "1")], Some(1.0), 1.0)).collect();
        for a in 0..12 {
            let endless = Cell { ours: None, ..cell(&[("a", &a.to_string()), ("b", "2")], Some(0.5), 0.0) };
            cells.push(endless);
        }
        let axes = ["b".to_owned()];
        let all = agreements(&cells, &BTreeMap::from([("t", axes.as_slice())]));
        assert_eq!((all[0].cells, all[0].within), (24, [12, 12, 12]));
        assert_eq!(all[0].order, Some(Order { sets: 12, sets_kept: 0, pairs: 12, pairs_kept: 0 }));
    }

    #[test]
    fn sizes_and_orders_are_counted_by_group() {
        let mut cells = Vec::new();
        for (a, ours) in
            [("x", [1.0, 2.1, 3.5]), ("y", [1.0, 3.0, 2.0]), ("z", [1.0, 1.0, 1.0]), ("u", [9.0, 9.0, 9.0])]
        {
            for (b, (paper, ours)) in ["1", "2", "3"].iter().zip([1.0, 2.0, 3.0].into_iter().zip(ours)) {
                // A tie in z; u has a cell that the paper does not print.
                let paper = if a == "z" { Some(1.0 + paper / 1000.0) } else { Some(paper) };
                cells.push(cell(&[("a", a), ("b", b)], paper.filter(|_| a != "u" || *b != "3"), ours));
            }
        }
        cells.push(cell(&[("a", "v"), ("b", "1")], Some(1.0), 1.0));
        let axes = ["b".to_owned()];
        let all = agreements(&cells, &BTreeMap::from([("t", axes.as_slice())]));
        let whole = all.iter().find(|agreement| agreement.group.is_none()).unwrap();
        // 9 cells of x, y, z; two of u, far off; one of v.
        assert_eq!((whole.cells, whole.within), (12, [7, 8, 10]));
        assert_eq!(whole.order, Some(Order { sets: 3, sets_kept: 2, pairs: 6, pairs_kept: 5 }));
        let y =
            all.iter().find(|agreement| agreement.group == Some(("a".to_owned(), "y".to_owned()))).unwrap();
        assert_eq!((y.cells, y.order), (3, Some(Order { sets: 1, sets_kept: 0, pairs: 3, pairs_kept: 2 })));
        assert!(
            all.iter()
                .filter(|a| a.group.as_ref().is_some_and(|(axis, _)| axis == "b"))
                .all(|a| a.order.is_none())
        );
        assert!(lines(&all).starts_with("table t: 7 of 12 cells are within 10 % of the paper"));
    }
}
