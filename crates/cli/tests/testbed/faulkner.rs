//! Figures of the thesis by the kernel's TCP: a place of each, for seconds.

use std::process::{Command, Stdio};

use serde_json::Value;

use super::bench::{directory_of, missing, namespaces_of, wait_until};

/// Both schemes and a window, over blocked lines: bytes arrive, intact, since a changed one is an error; nothing is left.
#[test]
fn the_kernel_and_the_lab_make_a_place_of_each_figure() {
    if missing("the_kernel_and_the_lab_make_a_place_of_each_figure") {
        return;
    }
    let out = std::env::temp_dir().join(format!("longhaul-faulkner-{}", std::process::id()));
    let path = out.to_str().unwrap();
    for (figure, place, schemes) in [("4-4", "0.1", &["TCP", "TCP-LL"][..]), ("4-15", "66", &["TCP-LL"])] {
        let arguments = ["bench", "faulkner", "--figure", figure, "--at", place, "--out", path];
        let run = Command::new(env!("CARGO_BIN_EXE_longhaul"))
            .args(arguments)
            .args(["--seeds", "1", "--seconds", "8", "--json"])
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let testbed = format!("lhb{}-0", run.id());
        // Or what is said about it below would be true of any name.
        wait_until("it builds", 20, || namespaces_of(&testbed) == 5);
        let output = run.wait_with_output().unwrap();
        assert!(output.status.success(), "{output:?}");
        let said: Value = serde_json::from_slice(&output.stdout).unwrap();
        let file = std::fs::read(out.join(format!("kernel-{figure}.json"))).unwrap();
        let file: Value = serde_json::from_slice(&file).unwrap();
        assert_eq!(file["figure"], figure);
        let points = file["points"].as_array().unwrap();
        let named: Vec<&str> = points.iter().map(|point| point["scheme"].as_str().unwrap()).collect();
        assert_eq!(named, schemes);
        for (point, run) in points.iter().zip(said["runs"].as_array().unwrap()) {
            assert!(point["kernel"].as_f64() > Some(0.0) && point["kernel"].as_f64() < Some(1.0), "{point}");
            assert!(point["lab"].as_f64() > Some(0.0), "{point}");
            assert!(run["kernel"]["bytes"].as_u64() > Some(1000), "{run}");
        }
        let drawing = std::fs::read_to_string(out.join(format!("kernel-{figure}.svg"))).unwrap();
        assert!(drawing.contains("TCP-LL, kernel"));
        assert_eq!((namespaces_of(&testbed), directory_of(&testbed).exists()), (0, false), "it is gone");
    }
    std::fs::remove_dir_all(&out).unwrap();
}
