//! Any text as a check: what reads is decided over a few samples without panic or endless work, twice in the same way.

#![no_main]

use lab::claims::{Check, Environment, Formula, Sample, Value, Verdict, Vocabulary};
use libfuzzer_sys::fuzz_target;

/// `P`, a list of numbers; `e.x` and `T(k)`, samples of four seeds; `I`, infinite with some seeds; `N`, of one seed.
struct World;

impl Environment for World {
    fn name(&self, name: &str) -> Option<Value> {
        let of = |values: &[f64]| Some(Sample::of(values.iter().copied().map(Some)).into());
        match name {
            "P" => Some([0.0, 1.0, 2.5].into_iter().collect()),
            "x" | "e.x" => of(&[1.0, 1.5, 0.5, 1.0]),
            "I" => of(&[1.0, f64::INFINITY, 2.0, f64::NEG_INFINITY]),
            "N" => of(&[1.0]),
            "U" => Some(Sample::of([Some(1.0), None, None]).because("lost").into()),
            _ => None,
        }
    }

    fn call(&self, name: &str, arguments: &[Value], _: &[(String, Value)]) -> Option<Value> {
        let k = arguments.first()?.as_number()?;
        (name == "T").then(|| Sample::of([0.0, 0.3, -0.2, 0.1].map(|luck| Some(k + luck))).into())
    }
}

impl Vocabulary for World {
    fn name(&self, name: &str) -> bool {
        Environment::name(self, name).is_some()
    }

    fn call(&self, name: &str, arguments: &[Option<Value>]) -> Result<(), String> {
        if name == "T" && arguments.len() == 1 { Ok(()) } else { Err(format!("{name} is none")) }
    }
}

fuzz_target!(|text: &str| {
    let (Ok(check), Ok(formula)) = (Check::parse(text), Formula::parse(text)) else { return };
    let _ = check.verify(&World);
    if let Ok(value) = formula.value(&World) {
        let _ = value.to_string();
    }
    let Ok(decision) = check.decide(&World) else { return };
    assert!(decision.reason.is_some() == (decision.verdict == Verdict::Undecided));
    let _ = decision.measured();
    assert_eq!(check.decide(&World), Ok(decision));
});
