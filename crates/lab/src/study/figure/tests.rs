//! Figures of a small study with a probe of its own.

use super::*;
use crate::study::probe::{Method, Probe};
use crate::study::{Files, Plan, Sweep};

/// A mean that settles, differently with each seed, and two flights.
const SETTLING: Probe = Probe {
    name: "settling",
    version: 1,
    quantities: &["level", "lengths"],
    series: &["flights"],
    method: Method::Trial(|trial, measured| {
        let lengths = [1.0, 2.0, 4.0];
        for k in lengths {
            measured.set("level", &[k.into()], 1.0 + trial.seed as f64 / k);
        }
        measured.set_numbers("lengths", lengths, "none");
        measured.set_series("flights", [(0.0, 0.0), (1.0, 0.0), (0.5, 1.0), (1.5, 1.0)]);
        Ok(())
    }),
};

const STUDY: &str = "name = 'test'\ntitle = ''\n\
    [[experiment]]\nname = 'e'\naxes.a = ['one']\nseeds = 3\nprobes = ['settling']\n\
    [[figure]]\nid = 'each'\ntitle = ''\nfrom = 'e'\nx = 'k'\nover = '[k for k in lengths if k > 1]'\n\
    y = 'level(a, k)'\ncurve = 'a'\neach = true\n\
    [[figure]]\nid = 'mean'\ntitle = ''\nfrom = 'e'\nx = 'k'\nover = 'lengths'\ny = 'level(a, k)'\n\
    curve = 'a'\nbound = '1 / k'\n\
    [[figure]]\nid = 'trace'\ntitle = ''\nkind = 'trace'\nfrom = 'e'\nat = { a = 'one' }\nstrokes = ['flights']\n";

fn load(text: &'static str) -> Result<Study, ConfigError> {
    let files: &'static [(&'static str, &'static str)] = Box::leak(Box::new([("experiments.toml", text)]));
    Study::load(Files::Embedded("study", files), "experiments.toml", &[&SETTLING])
}

#[test]
fn an_argument_can_be_the_abscissa_and_each_seed_have_its_line() {
    let study = load(STUDY).unwrap();
    let outcome = Sweep::prepare(&study, Plan::default()).unwrap().run(|_| {}).unwrap();
    let figures = figures(&outcome).unwrap();
    let thin = |name: &str| {
        let figure = figures.iter().find(|figure| figure.name == name).unwrap();
        figure.drawing.svg().matches("stroke-width=\"0.8\"").count()
    };
    assert_eq!((thin("each"), thin("mean"), thin("trace")), (3, 0, 2));
    let form = study.figures.iter().find(|form| form.id == "mean").unwrap();
    let looks = looks::of(&study);
    let source = Source::new(&outcome, form, 0, &looks).unwrap();
    let places = source.abscissae(&source.curves()[0]).unwrap();
    let points =
        places.iter().map(|(scope, x)| (*x, told(&source.value(&form.y, scope).unwrap()).unwrap().0));
    // The mean of the seeds 1 to 3 is 2.
    assert_eq!(points.collect::<Vec<_>>(), [(1.0, 3.0), (2.0, 2.0), (4.0, 1.5)]);
}

#[test]
fn bars_are_told_apart_without_colour() {
    let text = "name = 'test'\ntitle = ''\n\
        [[experiment]]\nname = 'e'\naxes.a = ['one', 'two']\naxes.b = ['here', 'there']\nseeds = 1\n\
        probes = ['settling']\n\
        [[figure]]\nid = 'bars'\ntitle = ''\nkind = 'bars'\nfrom = 'e'\nx = 'a'\ny = 'level(a, b, 1)'\n\
        curve = 'b'\nbound = '1'\n";
    let study = load(text).unwrap();
    let outcome = Sweep::prepare(&study, Plan::default()).unwrap().run(|_| {}).unwrap();
    let svg = figures(&outcome).unwrap()[0].drawing.svg();
    // The first bar's mark is a circle and the second's a square, in two groups and the legend; the bound has none.
    let looks = looks::of(&study);
    for (name, mark) in [("here", "<circle"), ("there", "<polygon")] {
        let colour = format!("fill=\"{}\"", looks.look(name).colour);
        let elements = || svg.split_inclusive('>').filter(|element| element.contains(&colour));
        assert_eq!(elements().filter(|element| element.starts_with(mark)).count(), 3, "{name}: {svg}");
        // Each of the two marks in the axes is above the middle of its bar.
        let number = |element: &str, name: &str| -> f64 {
            let (_, rest) = element.split_once(&format!(" {name}=\"")).unwrap();
            rest.split_once('"').unwrap().0.parse().unwrap()
        };
        let bars: Vec<_> = elements().filter(|element| element.starts_with("<rect")).collect();
        assert_eq!(bars.len(), 3, "{name}: {svg}");
        for bar in &bars[..2] {
            let middle = number(bar, "x") + number(bar, "width") / 2.0;
            let is_above = |element: &str| {
                if mark == "<circle" {
                    let (x, y) = (number(element, "cx"), number(element, "cy"));
                    return (x - middle).abs() < 0.2 && y < number(bar, "y");
                }
                let (_, points) = element.split_once("points=\"").unwrap();
                let corner = |point: &str| {
                    let (x, y) = point.trim_end_matches(['"', '/', '>']).split_once(',').unwrap();
                    (x.parse::<f64>().unwrap(), y.parse::<f64>().unwrap())
                };
                let corners: Vec<_> = points.split('"').next().unwrap().split(' ').map(corner).collect();
                let x = corners.iter().map(|(x, _)| x).sum::<f64>() / corners.len() as f64;
                (x - middle).abs() < 0.2 && corners.iter().all(|(_, y)| *y < number(bar, "y"))
            };
            let mut marks = elements().filter(|element| element.starts_with(mark));
            assert!(marks.any(is_above), "{bar}: {svg}");
        }
    }
    assert_eq!(svg.matches("<circle").count() + svg.matches("<polygon").count(), 6, "{svg}");
}

/// A study's first figure, as drawn and as data.
fn drawn(figure: &str) -> (String, Vec<crate::drawing::Row>) {
    let text = format!(
        "name = 'test'\ntitle = ''\n[[experiment]]\nname = 'e'\naxes.a = ['one', 'two']\naxes.b = ['10 ms', '200 ms']\n\
         axes.c = [0, 0.2]\nseeds = 3\nprobes = ['settling']\n[[figure]]\nid = 'it'\ntitle = 'it'\nfrom = 'e'\n{figure}"
    );
    let study = load(Box::leak(text.into_boxed_str())).unwrap();
    let outcome = Sweep::prepare(&study, Plan::default()).unwrap().run(|_| {}).unwrap();
    let drawing = figures(&outcome).unwrap().remove(0).drawing;
    (drawing.svg(), drawing.rows)
}

#[test]
fn an_interval_of_a_bar_goes_below_zero() {
    // The seeds have -0.5, 0.5 and 1.5.
    let (svg, rows) =
        drawn("kind = 'bars'\nx = 'a'\nat = { b = '10 ms', c = 0 }\ny = 'level(a, b, c, 1) - 2.5'\n");
    let (low, _) = rows[0].interval.unwrap();
    assert!(low < -1.0, "{rows:?}");
    assert!(["-1", "\u{2212}1"].iter().any(|tick| svg.contains(&format!(">{tick}</text>"))), "{svg}");
}

#[test]
fn a_heat_map_says_what_its_rows_and_colours_are() {
    let (svg, rows) = drawn(
        "kind = 'heat'\nx = 'b'\ncurve = 'c'\nat = { a = 'one' }\ny = 'level(a, b, c, 1)'\ny-axis = { label = 'level (m)' }\n",
    );
    for word in ["level (m)", "b (ms)", "c", "0.2", "200"] {
        assert_eq!(svg.matches(&format!(">{word}</text>")).count(), 1, "{word}: {svg}");
    }
    let row = Some(["0.2", "c"].map(str::to_owned));
    assert!(rows.iter().any(|it| it.row == row && it.x == "200" && it.curve == "c = 0.2"), "{rows:?}");
}

#[test]
fn bounds_have_the_colours_of_their_curves() {
    let lines = |bound: &str| {
        drawn(&format!(
            "x = 'b'\ncurve = 'a'\nat = {{ c = 0 }}\ny = 'level(a, b, c, 1)'\nbound = \"{bound}\"\n"
        ))
    };
    let names = |rows: &[crate::drawing::Row]| {
        let mut names: Vec<String> = rows.iter().map(|row| row.curve.clone()).collect();
        names.dedup();
        names
    };
    let (svg, rows) = lines("9");
    assert_eq!(
        (names(&rows), svg.contains(">bound</text>")),
        (vec!["one".to_owned(), "two".into(), "bound".into()], true)
    );
    let (svg, rows) = lines("9 if a == 'one' else 8");
    assert_eq!(names(&rows)[2..], ["bound of one", "bound of two"]);
    assert_eq!(svg.matches(">bound, in the colour of its curve</text>").count(), 1, "{svg}");
}

#[test]
fn an_axis_has_its_own_abscissae() {
    let text = STUDY.replacen("x = 'k'", "x = 'a'", 1);
    let complaint = load(Box::leak(text.into_boxed_str())).unwrap_err().to_string();
    assert!(complaint.contains("over needs lines whose x is not an axis"), "{complaint}");
}
