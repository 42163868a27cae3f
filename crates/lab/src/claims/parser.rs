//! Reads a check: the expressions of Python without lambdas, assignments and texts that are joined; the one
//! sort of attribute is a quantity of an experiment, `blockage.T`.
//!
//! Precedence is Python's (language reference, 6.17): choice, `or`, `and`, `not`, comparisons, sums, products,
//! signs, powers, calls and indices.

use core::ops::Range;

use super::expression::{Arithmetic, Clause, Comparator, Expression};
use super::lexer::{self, Kind, Token};
use super::value::Value;

/// Why a text is no check, and where it stops being one.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("at byte {at}: {message}")]
pub struct ParseError {
    /// The place in the text, in bytes.
    pub at: usize,
    /// What is wrong.
    pub message: String,
}

/// How deep brackets may stand in each other.
const MAX_DEPTH: u32 = 64;

/// Operators of arithmetic and indices of one check, at most: each is a step down when it is evaluated.
const MAX_OPERATORS: u32 = 500;

/// The expression that `source` says.
pub(super) fn parse(source: &str) -> Result<Expression, ParseError> {
    let tokens = lexer::tokens(source)?;
    let mut parser = Parser { source, tokens, at: 0, depth: 0, operators: 0 };
    let expression = parser.choice()?;
    match parser.peek() {
        Kind::End => Ok(expression),
        _ => Err(parser.unexpected("the end of the check")),
    }
}

struct Parser<'a> {
    source: &'a str,
    tokens: Vec<Token>,
    at: usize,
    depth: u32,
    operators: u32,
}

type Parsed = Result<Expression, ParseError>;

impl Parser<'_> {
    fn peek(&self) -> &Kind {
        &self.tokens[self.at].kind
    }

    fn start(&self) -> usize {
        self.tokens[self.at].span.start
    }

    /// The text from `start` to the last word taken.
    fn text_since(&self, start: usize) -> String {
        let end = self.tokens[self.at.saturating_sub(1)].span.end;
        self.source[Range { start, end: end.max(start) }].to_owned()
    }

    fn unexpected(&self, wanted: &str) -> ParseError {
        let token = &self.tokens[self.at];
        let found = match token.kind {
            Kind::End => "the end".to_owned(),
            _ => format!("\"{}\"", &self.source[token.span.clone()]),
        };
        ParseError { at: token.span.start, message: format!("{found} instead of {wanted}") }
    }

    fn take_sign(&mut self, sign: &str) -> bool {
        let there = matches!(self.peek(), Kind::Sign(found) if *found == sign);
        self.at += usize::from(there);
        there
    }

    fn take_word(&mut self, word: &str) -> bool {
        let there = matches!(self.peek(), Kind::Name(found) if found == word);
        self.at += usize::from(there);
        there
    }

    fn expect_sign(&mut self, sign: &str) -> Result<(), ParseError> {
        if self.take_sign(sign) { Ok(()) } else { Err(self.unexpected(&format!("\"{sign}\""))) }
    }

    fn expect_word(&mut self, word: &str) -> Result<(), ParseError> {
        if self.take_word(word) { Ok(()) } else { Err(self.unexpected(&format!("\"{word}\""))) }
    }

    fn count_operator(&mut self) -> Result<(), ParseError> {
        self.operators += 1;
        if self.operators > MAX_OPERATORS {
            let message = format!("more than {MAX_OPERATORS} operators and indices");
            return Err(ParseError { at: self.start(), message });
        }
        Ok(())
    }

    fn choice(&mut self) -> Parsed {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            let message = format!("more than {MAX_DEPTH} brackets in each other");
            return Err(ParseError { at: self.start(), message });
        }
        let then = self.any()?;
        let choice = if self.take_word("if") {
            let condition = Box::new(self.any()?);
            self.expect_word("else")?;
            let otherwise = Box::new(self.choice()?);
            Expression::Choice { condition, then: Box::new(then), otherwise }
        } else {
            then
        };
        self.depth -= 1;
        Ok(choice)
    }

    fn any(&mut self) -> Parsed {
        self.joined("or", Self::all, Expression::Any)
    }

    fn all(&mut self) -> Parsed {
        self.joined("and", Self::not, Expression::All)
    }

    fn joined(
        &mut self,
        word: &str,
        part: impl Fn(&mut Self) -> Parsed,
        whole: impl Fn(Vec<Expression>) -> Expression,
    ) -> Parsed {
        let first = part(self)?;
        let mut parts = vec![first];
        while self.take_word(word) {
            parts.push(part(self)?);
        }
        Ok(if parts.len() == 1 { parts.remove(0) } else { whole(parts) })
    }

    fn not(&mut self) -> Parsed {
        let mut negations = 0;
        while self.take_word("not") {
            negations += 1;
        }
        let mut expression = self.comparison()?;
        // Two of them make a truth of what is none; more than that take each other away.
        for _ in 0..if negations > 2 { 2 - negations % 2 } else { negations } {
            expression = Expression::Not(Box::new(expression));
        }
        Ok(expression)
    }

    fn comparison(&mut self) -> Parsed {
        let start = self.start();
        let first = self.sum()?;
        let mut operands = vec![(self.text_since(start), first)];
        let mut comparators = Vec::new();
        while let Some(comparator) = self.comparator() {
            comparators.push(comparator);
            let start = self.start();
            let operand = self.sum()?;
            operands.push((self.text_since(start), operand));
        }
        if comparators.is_empty() {
            return Ok(operands.remove(0).1);
        }
        Ok(Expression::Comparison { text: self.text_since(start), operands, comparators })
    }

    fn comparator(&mut self) -> Option<Comparator> {
        let signs = [
            ("<=", Comparator::LessOrEqual),
            (">=", Comparator::GreaterOrEqual),
            ("==", Comparator::Equal),
            ("!=", Comparator::NotEqual),
            ("<", Comparator::Less),
            (">", Comparator::Greater),
        ];
        if let Some((_, comparator)) = signs.into_iter().find(|(sign, _)| self.take_sign(sign)) {
            return Some(comparator);
        }
        if self.take_word("in") {
            return Some(Comparator::In);
        }
        if self.take_word("is") {
            return Some(if self.take_word("not") { Comparator::NotEqual } else { Comparator::Equal });
        }
        let not_in = matches!(self.peek(), Kind::Name(word) if word == "not")
            && matches!(self.tokens.get(self.at + 1), Some(Token { kind: Kind::Name(word), .. }) if word == "in");
        self.at += if not_in { 2 } else { 0 };
        not_in.then_some(Comparator::NotIn)
    }

    fn sum(&mut self) -> Parsed {
        self.chain(&[("+", Arithmetic::Add), ("-", Arithmetic::Subtract)], Self::product)
    }

    fn product(&mut self) -> Parsed {
        let operators = [
            ("*", Arithmetic::Multiply),
            ("//", Arithmetic::FloorDivide),
            ("/", Arithmetic::Divide),
            ("%", Arithmetic::Remainder),
        ];
        self.chain(&operators, Self::signed)
    }

    /// Operations of one precedence, from the left.
    fn chain(&mut self, operators: &[(&str, Arithmetic)], operand: impl Fn(&mut Self) -> Parsed) -> Parsed {
        let mut left = operand(self)?;
        while let Some((_, operator)) = operators.iter().find(|(sign, _)| self.take_sign(sign)) {
            self.count_operator()?;
            let right = Box::new(operand(self)?);
            left = Expression::Arithmetic { operator: *operator, left: Box::new(left), right };
        }
        Ok(left)
    }

    fn signed(&mut self) -> Parsed {
        let mut negative = false;
        while matches!(self.peek(), Kind::Sign("+" | "-")) {
            negative ^= self.take_sign("-");
            self.take_sign("+");
        }
        let power = self.power()?;
        Ok(if negative { Expression::Negate(Box::new(power)) } else { power })
    }

    fn power(&mut self) -> Parsed {
        let base = self.postfix()?;
        if !self.take_sign("**") {
            return Ok(base);
        }
        self.count_operator()?;
        let right = Box::new(self.signed()?);
        Ok(Expression::Arithmetic { operator: Arithmetic::Power, left: Box::new(base), right })
    }

    fn postfix(&mut self) -> Parsed {
        let mut expression = self.atom()?;
        loop {
            if self.take_sign("[") {
                self.count_operator()?;
                expression = self.subscript(expression)?;
            } else if matches!(self.peek(), Kind::Sign("(")) {
                let Expression::Name { name, at } = expression else {
                    return Err(self.unexpected("an operator (only names can be called)"));
                };
                self.at += 1;
                expression = self.call(name, at)?;
            } else {
                return Ok(expression);
            }
        }
    }

    fn subscript(&mut self, of: Expression) -> Parsed {
        let of = Box::new(of);
        let from = if self.take_sign(":") { None } else { Some(Box::new(self.choice()?)) };
        if let Some(at) = from.as_ref().filter(|_| self.take_sign("]")) {
            return Ok(Expression::Index { of, at: at.clone() });
        }
        if from.is_some() {
            self.expect_sign(":")?;
        }
        let ends = matches!(self.peek(), Kind::Sign("]"));
        let to = if ends { None } else { Some(Box::new(self.choice()?)) };
        self.expect_sign("]")?;
        Ok(Expression::Slice { of, from, to })
    }

    /// The arguments of a call, whose bracket has been taken.
    fn call(&mut self, name: String, at: usize) -> Parsed {
        let (mut arguments, mut options) = (Vec::new(), Vec::new());
        while !self.take_sign(")") {
            let named = matches!(self.peek(), Kind::Name(_))
                && matches!(self.tokens[self.at + 1].kind, Kind::Sign("="));
            if named {
                let Kind::Name(option) = self.peek().clone() else { unreachable!("it was looked at") };
                self.at += 2;
                options.push((option, self.choice()?));
            } else if !options.is_empty() {
                return Err(self.unexpected("another option"));
            } else {
                let argument = self.choice()?;
                arguments.push(self.with_clauses(argument)?);
            }
            if !matches!(self.peek(), Kind::Sign(")")) {
                self.expect_sign(",")?;
            }
        }
        Ok(Expression::Call { name, at, arguments, options })
    }

    fn atom(&mut self) -> Parsed {
        let literal = match self.peek().clone() {
            Kind::Number(value) => Expression::Literal(Value::Number(value)),
            Kind::Text(text) => Expression::Literal(Value::Text(text)),
            Kind::Name(name) => match name.as_str() {
                "True" => Expression::Literal(Value::Bool(true)),
                "False" => Expression::Literal(Value::Bool(false)),
                "None" => Expression::Literal(Value::None),
                keyword if KEYWORDS.contains(&keyword) => return Err(self.unexpected("a value")),
                _ => return self.name(name),
            },
            Kind::Sign("(") => return self.bracket(")"),
            Kind::Sign("[") => return self.bracket("]"),
            Kind::Sign(_) | Kind::End => return Err(self.unexpected("a value")),
        };
        self.at += 1;
        Ok(literal)
    }

    /// A name, or the quantity of an experiment: `blockage.T` is one name to whoever knows it.
    fn name(&mut self, mut name: String) -> Parsed {
        let at = self.start();
        self.at += 1;
        if self.take_sign(".") {
            match self.peek() {
                Kind::Name(quantity) if !KEYWORDS.contains(&quantity.as_str()) => {
                    name = format!("{name}.{quantity}");
                }
                _ => return Err(self.unexpected("the name of a quantity")),
            }
            self.at += 1;
        }
        Ok(Expression::Name { name, at })
    }

    /// What stands in brackets: an expression, a tuple, a list or a comprehension.
    fn bracket(&mut self, close: &'static str) -> Parsed {
        self.at += 1;
        let (mut items, mut commas, mut comprehension) = (Vec::new(), 0, false);
        while !self.take_sign(close) {
            let item = self.choice()?;
            comprehension = matches!(self.peek(), Kind::Name(name) if name == "for");
            items.push(self.with_clauses(item)?);
            if !matches!(self.peek(), Kind::Sign(sign) if *sign == close) {
                self.expect_sign(",")?;
                commas += 1;
            }
        }
        if items.len() == 1 && commas == 0 && (close == ")" || comprehension) {
            return Ok(items.remove(0));
        }
        Ok(Expression::List(items))
    }

    /// `item`, or a comprehension of it if `for` follows.
    fn with_clauses(&mut self, item: Expression) -> Parsed {
        let mut clauses = Vec::new();
        while self.take_word("for") {
            let targets = self.targets()?;
            self.expect_word("in")?;
            let source = self.any()?;
            let mut conditions = Vec::new();
            while self.take_word("if") {
                conditions.push(self.any()?);
            }
            clauses.push(Clause { targets, source, conditions });
        }
        Ok(if clauses.is_empty() {
            item
        } else {
            Expression::Comprehension { item: Box::new(item), clauses }
        })
    }

    fn targets(&mut self) -> Result<Vec<String>, ParseError> {
        let bracketed = self.take_sign("(");
        let mut targets = Vec::new();
        loop {
            match self.peek().clone() {
                Kind::Name(name) if !KEYWORDS.contains(&name.as_str()) => targets.push(name),
                _ => return Err(self.unexpected("a name")),
            }
            self.at += 1;
            if !self.take_sign(",") {
                break;
            }
        }
        if bracketed {
            self.expect_sign(")")?;
        }
        Ok(targets)
    }
}

/// Words that are no names.
const KEYWORDS: [&str; 12] =
    ["and", "or", "not", "in", "is", "if", "else", "for", "True", "False", "None", "lambda"];

#[cfg(test)]
mod tests {
    use super::*;

    fn complaint(source: &str) -> String {
        parse(source).unwrap_err().to_string()
    }

    #[test]
    fn broken_checks_are_refused_with_their_place() {
        for (source, want) in [
            ("", "at byte 0: the end instead of a value"),
            ("1 +", "at byte 3: the end instead of a value"),
            ("a b", "at byte 2: \"b\" instead of the end of the check"),
            ("f(a", "at byte 3: the end instead of \",\""),
            ("f(x=1, 2)", "at byte 7: \"2\" instead of another option"),
            ("(1, 2)(3)", "at byte 6: \"(\" instead of an operator (only names can be called)"),
            ("a.b.c", "at byte 3: \".\" instead of the end of the check"),
            ("a.if", "at byte 2: \"if\" instead of the name of a quantity"),
            ("x for y in z", "at byte 2: \"for\" instead of the end of the check"),
            ("all(x for in z)", "at byte 10: \"in\" instead of a name"),
            ("1 if 2", "at byte 6: the end instead of \"else\""),
            ("a < ", "at byte 4: the end instead of a value"),
            ("lambda", "at byte 0: \"lambda\" instead of a value"),
        ] {
            assert_eq!(complaint(source), want, "{source}");
        }
        let deep = "(".repeat(100) + "1" + &")".repeat(100);
        assert!(complaint(&deep).contains("more than 64 brackets"));
        for step in ["1+", "2**", "[0]"] {
            let (before, after) = if step == "[0]" { ("", step) } else { (step, "") };
            let long = before.repeat(501) + "1" + &after.repeat(501);
            assert!(complaint(&long).contains("more than 500 operators and indices"), "{step}");
        }
        let Ok(Expression::Not(of)) = parse(&("not ".repeat(9999) + "x")) else { panic!("a negation") };
        assert!(matches!(*of, Expression::Name { .. }));
    }

    #[test]
    fn a_comparison_keeps_its_text() {
        let Expression::Comparison { text, operands, .. } = parse(" 1 < f(a) / 2 <= 3 ").unwrap() else {
            panic!("a comparison")
        };
        let operands: Vec<_> = operands.iter().map(|(text, _)| text.as_str()).collect();
        assert_eq!((text.as_str(), &operands[..]), ("1 < f(a) / 2 <= 3", &["1", "f(a) / 2", "3"][..]));
    }
}
