//! One file per subcommand: its arguments and what it prints.

mod completions;
mod gateway;
mod gateway_doctor;
mod gateway_status;
#[cfg(feature = "top")]
mod gateway_top;
mod init;
mod keygen;
#[cfg(feature = "lab")]
mod known;
#[cfg(feature = "lab")]
mod lab;
mod log;
mod man;
mod outcome;
mod peer;
mod peer_add;
mod peer_files;
mod proxy;
mod pubkey;
mod schema;
mod secret;
#[cfg(not(feature = "lab"))]
mod without_lab;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

#[cfg(feature = "lab")]
const AFTER_HELP: &str = "Example:\n  longhaul demo\n  longhaul run --help";
#[cfg(not(feature = "lab"))]
const AFTER_HELP: &str =
    "Example:\n  longhaul gateway --help\n\nThis is a build for gateways alone, without the lab.";

/// TCP/IP over satellite and lossy wireless links: a gateway, and a lab that simulates the same protocol code.
#[derive(Debug, Parser)]
#[command(
    name = "longhaul",
    version,
    propagate_version = true,
    after_help = AFTER_HELP
)]
pub(crate) struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    #[cfg(feature = "lab")]
    Demo(lab::demo::Arguments),
    #[cfg(feature = "lab")]
    Run(lab::run::Arguments),
    #[cfg(feature = "lab")]
    Sweep(lab::sweep::Arguments),
    #[cfg(feature = "lab")]
    Reproduce(lab::reproduce::Arguments),
    #[cfg(feature = "lab")]
    Bench(lab::bench::Arguments),
    #[cfg(feature = "lab")]
    Chaos(lab::chaos::Arguments),
    Gateway(gateway::Arguments),
    Proxy(proxy::Arguments),
    Init(init::Arguments),
    Keygen(keygen::Arguments),
    Pubkey(pubkey::Arguments),
    Peer(peer::Arguments),
    #[cfg(feature = "lab")]
    Emulate(Box<lab::emulate::Arguments>),
    Schema(schema::Arguments),
    #[cfg(feature = "lab")]
    Testbed(lab::testbed::Arguments),
    #[cfg(feature = "lab")]
    Traffic(lab::traffic::Arguments),
    Completions(completions::Arguments),
    Man(man::Arguments),
    #[cfg(not(feature = "lab"))]
    #[command(name = "demo", aliases = without_lab::COMMANDS, hide = true)]
    WithoutLab(without_lab::Arguments),
}

/// Runs the chosen subcommand.
pub(crate) fn run(cli: &Cli) -> ExitCode {
    let code = match &cli.command {
        #[cfg(feature = "lab")]
        Command::Demo(arguments) => lab::demo::execute(arguments),
        #[cfg(feature = "lab")]
        Command::Run(arguments) => lab::run::execute(arguments),
        #[cfg(feature = "lab")]
        Command::Sweep(arguments) => lab::sweep::execute(arguments),
        #[cfg(feature = "lab")]
        Command::Reproduce(arguments) => lab::reproduce::execute(arguments),
        #[cfg(feature = "lab")]
        Command::Bench(arguments) => lab::bench::execute(arguments),
        #[cfg(feature = "lab")]
        Command::Chaos(arguments) => lab::chaos::execute(arguments),
        Command::Gateway(arguments) => gateway::execute(arguments),
        Command::Proxy(arguments) => proxy::execute(arguments),
        Command::Init(arguments) => init::execute(arguments),
        Command::Keygen(arguments) => keygen::execute(arguments),
        Command::Pubkey(arguments) => pubkey::execute(arguments),
        Command::Peer(arguments) => peer::execute(arguments),
        #[cfg(feature = "lab")]
        Command::Emulate(arguments) => lab::emulate::execute(arguments),
        Command::Schema(arguments) => schema::execute(arguments),
        #[cfg(feature = "lab")]
        Command::Testbed(arguments) => lab::testbed::execute(arguments),
        #[cfg(feature = "lab")]
        Command::Traffic(arguments) => lab::traffic::execute(arguments),
        Command::Completions(arguments) => completions::execute(arguments),
        Command::Man(arguments) => man::execute(arguments),
        #[cfg(not(feature = "lab"))]
        Command::WithoutLab(_) => without_lab::execute(),
    };
    outcome::ended(code)
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::Cli;

    /// Columns of a terminal that nobody has made wider.
    const COLUMNS: usize = 80;

    /// The examples of a command and of those within it, each a line of a shell.
    fn examples(command: &clap::Command, all: &mut Vec<String>) {
        let help = command.get_after_help().map(ToString::to_string).unwrap_or_default();
        let text = help.replace("\\\n", " ");
        all.extend(
            text.lines().map(str::trim).filter(|line| line.starts_with("longhaul ")).map(str::to_owned),
        );
        for line in help.lines().filter(|line| line.starts_with("  ")) {
            assert!(line.chars().count() <= COLUMNS, "wrapped, it cannot be pasted: {line}");
        }
        command.get_subcommands().for_each(|inner| examples(inner, all));
    }

    #[test]
    fn examples_can_be_pasted() {
        let mut all = Vec::new();
        examples(&Cli::command(), &mut all);
        assert!(all.len() > 40, "{all:?}");
        for example in all {
            // What a shell does with the rest is its own.
            let command = example.split(['|', '&', '>']).next().unwrap_or_default();
            let words = shlex::split(command).unwrap_or_else(|| panic!("{example}: quotes"));
            if let Err(error) = Cli::command().try_get_matches_from(words) {
                let asks = matches!(error.kind(), clap::error::ErrorKind::DisplayHelp);
                assert!(asks, "{example}: {error}");
            }
        }
    }
}
