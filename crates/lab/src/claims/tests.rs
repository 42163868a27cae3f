use super::*;

/// Names and functions for the tests: `p` and `q` are lists, `t(x)` is ten times `x`, `lost()` is unknown.
struct World;

impl Environment for World {
    fn name(&self, name: &str) -> Option<Value> {
        match name {
            "P" => Some([0.0, 10.0, 20.0].into_iter().collect()),
            "pairs_done" => {
                let pair = |d: &str, e: f64| Value::List(vec![d.into(), e.into()]);
                Some(Value::List(vec![pair("CRA", 1.0), pair("VBDC", 2.0)]))
            }
            "rounds" => Some(Value::Unknown("no rounds".to_owned())),
            "Huge" => Some("Huge".into()),
            _ => None,
        }
    }

    fn call(&self, name: &str, arguments: &[Value], options: &[(String, Value)]) -> Option<Value> {
        match (name, arguments, options) {
            ("t", [x], []) => Some(Value::Number(10.0 * x.as_number()?)),
            ("t", [x], [(option, by)]) if option == "by" => {
                Some(Value::Number(by.as_number()? * x.as_number()?))
            }
            ("m", [Value::Text(d), x], []) => Some(Value::Number(d.len() as f64 + x.as_number()?)),
            ("lost", [], []) => Some(Value::Unknown("nothing was lost".to_owned())),
            _ => None,
        }
    }
}

fn decide(check: &str) -> Decision {
    let read = Check::parse(check).unwrap_or_else(|error| panic!("{check}: {error}"));
    read.decide(&World).unwrap_or_else(|error| panic!("{check}: {error}"))
}

fn verdict(check: &str) -> Verdict {
    decide(check).verdict
}

#[test]
fn arithmetic_is_pythons() {
    for check in [
        "1 + 2 * 3 == 7",
        "(1 + 2) * 3 == 9",
        "2 ** 3 ** 2 == 512",
        "-2 ** 2 == -4",
        "2 ** -1 == 0.5",
        "7 // 2 == 3 and -7 // 2 == -4",
        "7 % 3 == 1 and -7 % 3 == 2",
        "10 / 4 == 2.5",
        "1e3 == 1000 and 190e3 == 190000 and .5 == 0.5",
        "8 - 3 - 2 == 3 and 8 / 4 / 2 == 1",
        "- - 3 == 3",
        "True + True == 2",
        "6 * -2 == -12",
    ] {
        assert_eq!(verdict(check), Verdict::Holds, "{check}");
    }
}

#[test]
fn comparisons_chain() {
    for (check, want) in [
        ("1 < 2 < 3", Verdict::Holds),
        ("1 < 3 < 2", Verdict::Fails),
        ("0.6 <= t(0.07) <= 0.76", Verdict::Holds),
        ("1 < 2 == 2 != 3 > 0", Verdict::Holds),
        ("not 1 > 2", Verdict::Holds),
        ("not not 1 > 2", Verdict::Fails),
        ("20 in P and 5 not in P", Verdict::Holds),
        ("'a' < 'b'", Verdict::Holds),
        ("None is None and 3 is not None", Verdict::Holds),
        ("(1, 2) == [1, 2]", Verdict::Holds),
        ("'CRA' == 'VBDC' or 3 == 'x'", Verdict::Fails),
        ("inf > 1e300", Verdict::Holds),
    ] {
        assert_eq!(verdict(check), want, "{check}");
    }
}

/// The shapes that the claims files use.
#[test]
fn comprehensions_loop_unpack_and_choose() {
    for (check, want) in [
        ("all(t(p) >= p for p in P)", Verdict::Holds),
        ("all(t(b) > t(a) for a, b in pairs(P))", Verdict::Holds),
        ("all(t(a) < t(b) for a, b in zip(P, P[1:]))", Verdict::Holds),
        ("all(m(d,e) > 3 for d,e in pairs_done if e in (1, 2) and d != 'none')", Verdict::Holds),
        ("max(t(p) + q for p in P for q in (1, 2) if p != 20) == 102", Verdict::Holds),
        ("sum(t(p) for p in P) == 300", Verdict::Holds),
        ("mean(t(p) / 10 for p in P) == 10", Verdict::Holds),
        ("min(t(1), t(2)) == 10 and min([5, 4]) == 4", Verdict::Holds),
        ("len(P) == 3 and P[-1] == 20 and P[0:2] == (0, 10)", Verdict::Holds),
        ("sorted([3, 1, 2]) == (1, 2, 3)", Verdict::Holds),
        ("[k for k in range(1, 4)] == [1, 2, 3]", Verdict::Holds),
        ("any(p > 15 for p in P)", Verdict::Holds),
        ("(t(1) / v for v in (10,))[0] == 1", Verdict::Holds),
        ("all(t(p, by=2) == 2 * p for p in P)", Verdict::Holds),
        ("all(t(p) <= (1.02 if p is None else 10.0) * p for p in P)", Verdict::Holds),
        ("all(p > 100 for p in P if p > 50)", Verdict::Holds),
        ("all(abs(t(p) / v - 1) <= 0.3 for p, v in ((1, 10), (2, 21)))", Verdict::Holds),
    ] {
        assert_eq!(verdict(check), want, "{check}");
    }
}

#[test]
fn what_is_unknown_leaves_undecided_only_what_depends_on_it() {
    for (check, want) in [
        ("lost() > 1", Verdict::Undecided),
        ("lost() + 1 == lost()", Verdict::Undecided),
        ("1 > 2 and lost() > 1", Verdict::Fails),
        ("lost() > 1 and 1 > 2", Verdict::Fails),
        ("lost() > 1 or 2 > 1", Verdict::Holds),
        ("lost() > 1 and 2 > 1", Verdict::Undecided),
        ("all(x > 0 for x in (1, lost()))", Verdict::Undecided),
        ("all(x > 0 for x in (-1, lost()))", Verdict::Fails),
        ("all(r > 0 for r in rounds)", Verdict::Undecided),
        ("max(1, lost()) > 0", Verdict::Undecided),
        ("1 / 0 > 1", Verdict::Undecided),
        ("max([]) > 1", Verdict::Undecided),
        ("not lost()", Verdict::Undecided),
        ("lost() in P", Verdict::Undecided),
    ] {
        assert_eq!(verdict(check), want, "{check}");
    }
    assert_eq!(decide("2 > 1 and lost() == 0").reason.as_deref(), Some("nothing was lost"));
}

#[test]
fn mistakes_are_no_verdicts() {
    for (check, want) in [
        ("nobody > 1", "no such name: nobody"),
        ("f(1) > 1", "no such function: f"),
        ("'a' + 1 > 1", "arithmetic does not go with 'a'"),
        ("'a' < 1", "an order does not go with 'a'"),
        ("all(1 for a, b in P)", "for a, b in does not go with 0"),
        ("all(1 for a in 3)", "for ... in does not go with 3"),
        ("P[7] > 1", "an index of 3 items does not go with 7"),
        ("len(3) == 1", "len does not go with 3"),
        ("abs(P) > 1", "a function of numbers does not go with (0, 10, 20)"),
        ("all(1 for a in range(100000) for b in range(100000))", "more than 1000000 steps"),
    ] {
        let error = Check::parse(check).unwrap().decide(&World).unwrap_err();
        assert_eq!(error.to_string(), want, "{check}");
    }
}

#[test]
fn a_decision_says_what_it_rests_on() {
    let decision = decide("1.00 < t(0.107) <= 1.10 and all(t(p) >= p + 1 for p in P) and t(0.107) > 1");
    assert_eq!(decision.verdict, Verdict::Fails);
    let calls: Vec<_> = decision.lookups.iter().map(|lookup| lookup.call.as_str()).collect();
    assert_eq!(calls, ["t(0.107)", "t(0)", "t(10)", "t(20)"]);
    assert_eq!(
        decision.measured(),
        "t(0.107) = 1.070; t(p) = 0 to 200, p + 1 = 1 to 21 (2 of 3 hold); t(0.107) = 1.070"
    );
    assert!(decide("t(p) > 1 if lost() > 0 else 1 > 2").comparisons.is_empty());
    assert_eq!(decide("lost() > 1").measured(), "lost() is unknown");
}

#[test]
fn seeds_vote_beside_the_medians() {
    let run = |value| {
        let mut run = Measurements::new();
        run.set_or("x", &[], value, "nothing came up");
        run
    };
    let check = Check::parse("x() > 2").unwrap();
    let over = |values: &[Option<f64>]| {
        let runs: Vec<_> = values.iter().copied().map(run).collect();
        let Replicated { decision, seeds } = check.decide_over(&runs).unwrap();
        (decision.verdict, seeds)
    };
    let some = over(&[Some(1.0), Some(3.0), Some(4.0), None]);
    assert_eq!(some, (Verdict::Holds, Tally { holds: 2, fails: 1, undecided: 1 }));
    assert_eq!(some.1.share(), Some(2.0 / 3.0));
    let none = over(&[Some(1.0), None, None]);
    assert_eq!(none, (Verdict::Undecided, Tally { holds: 0, fails: 1, undecided: 2 }));
    assert_eq!(Tally::default().share(), None);
}

const FILE: &str = r#"
[[claim]]
id = "one"
section = "1"
statement = "It is faster."
experiment = "a run"
check = "x() > 2"
kind = "ratio"
"#;

#[test]
fn a_claims_file_reads_and_complains_with_its_place() {
    let claims = parse("c.toml", FILE).unwrap();
    assert_eq!((claims[0].id.as_str(), claims[0].kind), ("one", Kind::Ratio));
    let complaint = |text: &str| parse("c.toml", text).unwrap_err().to_string();
    assert_eq!(
        complaint(&FILE.replace("x() > 2", "x( > 2")),
        "c.toml:7: check = \"x( > 2\": no check: at byte 3: \">\" where a value should stand"
    );
    let twice = complaint(&FILE.repeat(2));
    assert!(twice.starts_with("c.toml:10: ") && twice.ends_with("their ids must differ"), "{twice}");
    assert!(
        complaint(&FILE.replace("ratio", "guess")).starts_with("c.toml:8: kind = \"guess\": unknown variant")
    );
}
