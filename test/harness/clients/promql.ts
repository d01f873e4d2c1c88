/** A reader of PromQL expressions with the parser of Prometheus' own web page: their metrics, labels and functions. */
import { parser } from "@prometheus-io/lezer-promql";

type Node = ReturnType<typeof parser.parse>["topNode"];

interface Matcher {
  label: string;
  operator: string;
  value: string;
}

interface Selector {
  metric: string;
  matchers: Matcher[];
  /** Labels that an aggregation around it keeps, or that a binary operator matches by. */
  groupedBy: string[];
  /** The functions around it, the innermost first. */
  functions: string[];
}

/** Throws on an invalid expression. Grafana's variables are substituted first. */
export function selectorsOf(expression: string): Selector[] {
  const text = expression.replaceAll(/\$__(rate_)?interval|\$__range/g, "5m");
  const root = parser.parse(text).topNode;
  const selectors: Selector[] = [];
  for (const node of nodesOf(root)) {
    if (node.type.isError) throw new Error(`${expression}: cannot be read at ${node.from}: ${text.slice(node.from)}`);
    if (node.name === "VectorSelector") selectors.push(selectorOf(node, (each) => text.slice(each.from, each.to)));
  }
  if (selectors.length === 0) throw new Error(`${expression}: names no metric`);
  return selectors;
}

function selectorOf(node: Node, textOf: (node: Node) => string): Selector {
  const around = [...parentsOf(node)];
  const groupings = around.flatMap((each) =>
    ["AggregateModifier", "MatchingModifierClause"].flatMap((kind) => each.getChildren(kind)),
  );
  const matchers = [...nodesOf(node)].filter(({ name }) => name === "UnquotedLabelMatcher");
  return {
    metric: textOf(childOf(node, "Identifier")),
    matchers: matchers.map((matcher) => ({
      label: textOf(childOf(matcher, "LabelName")),
      operator: textOf(childOf(matcher, "MatchOp")),
      value: JSON.parse(textOf(childOf(matcher, "StringLiteral"))),
    })),
    groupedBy: groupings.flatMap((each) => [...nodesOf(each)].filter(({ name }) => name === "LabelName").map(textOf)),
    functions: around.flatMap((each) => each.getChildren("FunctionIdentifier").map(textOf)),
  };
}

function* nodesOf(node: Node): Generator<Node> {
  yield node;
  for (let child = node.firstChild; child; child = child.nextSibling) yield* nodesOf(child);
}

function* parentsOf(node: Node): Generator<Node> {
  for (let above = node.parent; above; above = above.parent) yield above;
}

function childOf(node: Node, name: string): Node {
  const child = node.getChild(name);
  if (!child) throw new Error(`${node.name} has no ${name}`);
  return child;
}
