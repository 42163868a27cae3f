//! Looks for mistakes in an expression before anything is run: unknown names and functions, and calls that cannot be right.

use super::builtin;
use super::expression::{Arithmetic, Clause, Expression};
use super::parser::ParseError;
use super::value::Value;

/// What the names and functions of a file's experiments are.
pub trait Vocabulary {
    /// Whether somebody defines this name.
    fn name(&self, name: &str) -> bool;

    /// Whether a function can be called like this; an argument that is no literal is `None`.
    ///
    /// # Errors
    /// There is no such function, it takes another number of arguments, or an axis does not have that coordinate: in a
    /// sentence.
    fn call(&self, name: &str, arguments: &[Option<Value>]) -> Result<(), String>;

    /// As [`Vocabulary::call`], with named arguments; unless told otherwise, no function takes any.
    ///
    /// # Errors
    /// As [`Vocabulary::call`].
    fn call_with(
        &self,
        name: &str,
        arguments: &[Option<Value>],
        options: &[(String, Option<Value>)],
    ) -> Result<(), String> {
        match options {
            [] => self.call(name, arguments),
            [(option, _), ..] => Err(format!("{name} takes no argument called {option}")),
        }
    }
}

/// The first mistake of an expression.
pub(super) fn verify(expression: &Expression, vocabulary: &dyn Vocabulary) -> Result<(), ParseError> {
    Walk { vocabulary, bound: Vec::new() }.expression(expression)
}

struct Walk<'a> {
    vocabulary: &'a dyn Vocabulary,
    /// Names that comprehensions bind.
    bound: Vec<String>,
}

type Verified = Result<(), ParseError>;

impl Walk<'_> {
    fn expression(&mut self, expression: &Expression) -> Verified {
        match expression {
            Expression::Literal(_) => Ok(()),
            Expression::Name { name, at } => self.name(name, *at),
            Expression::List(items) | Expression::All(items) | Expression::Any(items) => self.each(items),
            Expression::Call { name, at, arguments, options } => self.call(name, *at, arguments, options),
            Expression::Index { of, at } => self.expression(of).and_then(|()| self.expression(at)),
            Expression::Slice { of, from, to } => {
                self.expression(of)?;
                [from, to].into_iter().flatten().try_for_each(|bound| self.expression(bound))
            }
            Expression::Negate(of) | Expression::Not(of) => self.expression(of),
            Expression::Arithmetic { left, right, .. } => {
                self.expression(left).and_then(|()| self.expression(right))
            }
            Expression::Comparison { operands, .. } => {
                operands.iter().try_for_each(|(_, operand)| self.expression(operand))
            }
            Expression::Choice { condition, then, otherwise } => {
                [condition, then, otherwise].into_iter().try_for_each(|part| self.expression(part))
            }
            Expression::Comprehension { item, clauses } => self.comprehension(item, clauses),
        }
    }

    fn each(&mut self, expressions: &[Expression]) -> Verified {
        expressions.iter().try_for_each(|expression| self.expression(expression))
    }

    fn name(&self, name: &str, at: usize) -> Verified {
        if name == "inf" || self.bound.iter().any(|bound| bound == name) || self.vocabulary.name(name) {
            return Ok(());
        }
        Err(ParseError { at, message: format!("no such name: {name}") })
    }

    fn call(
        &mut self,
        name: &str,
        at: usize,
        arguments: &[Expression],
        options: &[(String, Expression)],
    ) -> Verified {
        self.each(arguments)?;
        options.iter().try_for_each(|(_, option)| self.expression(option))?;
        if options.is_empty() && builtin::takes(name, arguments.len()) {
            return Ok(());
        }
        let literals: Vec<_> = arguments.iter().map(|argument| self.literal(argument)).collect();
        let options: Vec<_> =
            options.iter().map(|(name, value)| (name.clone(), self.literal(value))).collect();
        self.vocabulary.call_with(name, &literals, &options).map_err(|message| {
            let message = if builtin::is_known(name) {
                builtin::refusal(name, arguments.len()).to_string()
            } else {
                message
            };
            ParseError { at, message }
        })
    }

    /// The value of an expression in which nothing is left open.
    fn literal(&self, expression: &Expression) -> Option<Value> {
        match expression {
            Expression::Literal(value) => Some(value.clone()),
            Expression::Name { name, .. } if name == "inf" && !self.bound.contains(name) => {
                Some(Value::Number(f64::INFINITY))
            }
            Expression::Negate(of) => {
                let of = self.literal(of)?;
                super::arithmetic::operate(Arithmetic::Subtract, &Value::Number(0.0), &of).ok()
            }
            Expression::List(items) => {
                items.iter().map(|item| self.literal(item)).collect::<Option<Vec<_>>>().map(Value::List)
            }
            _ => None,
        }
    }

    fn comprehension(&mut self, item: &Expression, clauses: &[Clause]) -> Verified {
        let outer = self.bound.len();
        for clause in clauses {
            self.expression(&clause.source)?;
            self.bound.extend(clause.targets.iter().cloned());
            self.each(&clause.conditions)?;
        }
        let verified = self.expression(item);
        self.bound.truncate(outer);
        verified
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::claims::Check;

    /// `blockage.T(scheme, open)` with two schemes and `delays`, a list.
    struct Study;

    impl Vocabulary for Study {
        fn name(&self, name: &str) -> bool {
            name == "delays"
        }

        fn call(&self, name: &str, arguments: &[Option<Value>]) -> Result<(), String> {
            match (name, arguments) {
                ("blockage.T", [Some(Value::Text(scheme)), _]) if scheme != "TCP" && scheme != "COTMLL" => {
                    Err(format!("scheme has no '{scheme}'"))
                }
                ("blockage.T", [_, _]) => Ok(()),
                ("blockage.T", _) => Err(format!("blockage.T takes 2 arguments, not {}", arguments.len())),
                _ => Err(format!("no such function: {name}")),
            }
        }
    }

    #[test]
    fn mistakes_are_found_before_anything_runs() {
        for (source, want) in [
            ("1 < blockage.T('UDP', 1)", "at byte 4: scheme has no 'UDP'"),
            ("blockage.T('TCP')", "at byte 0: blockage.T takes 2 arguments, not 1"),
            ("blockage.T('TCP', 1, by=2)", "at byte 0: blockage.T takes no argument called by"),
            ("blockage.f(1)", "at byte 0: no such function: blockage.f"),
            ("all(T(d) > 0 for d in delays)", "at byte 4: no such function: T"),
            ("all(e > 0 for d in delays)", "at byte 4: no such name: e"),
            ("all(d > 0 for d in delays) and d > 0", "at byte 31: no such name: d"),
            ("1 if nobody else delays[x:]", "at byte 5: no such name: nobody"),
            ("1 in delays[x:]", "at byte 12: no such name: x"),
            ("quantile(delays) > 0", "at byte 0: quantile takes 2 arguments, not 1"),
            ("not -max()", "at byte 5: max takes at least 1 argument, not 0"),
            ("[spearman((1, k), delays)]", "at byte 14: no such name: k"),
        ] {
            let error = Check::parse(source).unwrap().verify(&Study).unwrap_err();
            assert_eq!(error.to_string(), want, "{source}");
        }
        for source in [
            "all(blockage.T(s, d) < inf for s in ('TCP', 'COTMLL') for d in delays if d > 0)",
            "max(blockage.T('TCP', delays[0]), -inf) < quantile(delays, 0.5)",
        ] {
            assert_eq!(Check::parse(source).unwrap().verify(&Study), Ok(()), "{source}");
        }
    }
}
