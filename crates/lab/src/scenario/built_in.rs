//! Scenarios that the program has with it, for those who have the program alone: `demo/download` is
//! `scenarios/demo/download.toml`.

use std::io;
use std::path::Path;

use base::config::ConfigError;

/// Each file of the folder `demo`.
macro_rules! built_in {
    [$($name:literal),+] => {
        [$((concat!("demo/", $name), include_str!(concat!("../../../../scenarios/demo/", $name, ".toml")))),+]
    };
}

/// The names of the built-in scenarios, and their texts.
pub const BUILT_IN: &[(&str, &str)] =
    &built_in!["download", "dumbbell", "order", "page", "queues", "shell", "stream", "voice"];

/// The text of the scenario file at `path`; where there is none, of the built-in one of that name, with or without its folder
/// `scenarios` and its ending.
///
/// # Errors
/// There is no such file, and none is built in; or it cannot be read.
pub fn read(path: &Path) -> Result<String, ConfigError> {
    std::fs::read_to_string(path).or_else(|error| {
        let built_in = Some(error.kind()).filter(|kind| *kind == io::ErrorKind::NotFound).and(find(path));
        built_in.map(str::to_owned).ok_or_else(|| {
            let names: Vec<&str> = BUILT_IN.iter().map(|(name, _)| *name).collect();
            let message = match error.kind() {
                io::ErrorKind::NotFound => format!("{error}; built in are {}", names.join(", ")),
                _ => error.to_string(),
            };
            ConfigError::about(&path.display().to_string(), message)
        })
    })
}

/// The text of the built-in scenario that `path` names.
pub(crate) fn find(path: &Path) -> Option<&'static str> {
    let name = path.strip_prefix("scenarios").unwrap_or(path).with_extension("");
    BUILT_IN.iter().find(|(known, _)| Path::new(known) == name).map(|(_, text)| *text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_demo_is_built_in_by_its_name() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios/demo");
        for file in std::fs::read_dir(&folder).unwrap() {
            let file = file.unwrap().path();
            let name = Path::new("demo").join(file.file_stem().unwrap());
            let text = std::fs::read_to_string(&file).unwrap();
            let as_written = Path::new("scenarios/demo").join(file.file_name().unwrap());
            for path in [name.as_path(), &as_written] {
                assert_eq!(read(path).unwrap(), text, "{}", path.display());
            }
        }
    }

    #[test]
    fn a_file_comes_first_and_an_unknown_name_hears_of_those_that_are_known() {
        let file = std::env::temp_dir().join(format!("longhaul-built-in-{}.toml", std::process::id()));
        std::fs::write(&file, "mine").unwrap();
        assert_eq!(read(&file).unwrap(), "mine");
        std::fs::remove_file(&file).unwrap();
        let error = read(Path::new("demo/donwload")).unwrap_err().to_string();
        assert!(error.contains("built in are demo/download, demo/dumbbell"), "{error}");
    }
}
