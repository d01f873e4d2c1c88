/** Commands that are one call: arguments and options are fields of the operation, and the answer is printed. */
import { type Command, Option } from "commander";
import type { Operation, OutputOf } from "../../../shared/api/contract.ts";
import { call } from "./client.ts";
import { type CommandHelp, command } from "./command.ts";
import { asList } from "./list-options.ts";
import { type Cell, type JsonOption, moreLines, show, table } from "./output.ts";
import { withProgress } from "./progress.ts";

type Values = Record<string, unknown>;

/** Parser of one value; `before` is that of an earlier occurrence. */
type Parse = (text: string, before: never) => unknown;

interface Verb<Op extends Operation> extends Omit<CommandHelp, "summary"> {
  /** Further arguments. */
  args?: readonly (readonly [syntax: string, about: string, parse?: Parse])[];
  /** In the order of the help. Lists also have `--limit` and `--cursor`. */
  options?: readonly (Option | readonly [flags: string, about: string, parse?: Parse])[];
  /** Fields of arguments and options, where fieldFor() does not find them; null: the value is an object of fields. */
  fields?: Readonly<Record<string, string | null>>;
  /** Fields that no argument or option sets. */
  fixed?: Readonly<Values>;
  /** Text of the progress line; default: the operation's summary. */
  progress?: (input: Values) => string;
  lines: (value: OutputOf<Op>, input: Values) => string[];
}

/** `usage` is the name and arguments in commander's syntax. Throws if an argument or option has no field in the operation. */
export function verb<Op extends Operation>(operation: Op, usage: string, summary: string, row: Verb<Op>): Command {
  const { args = [], options = [], fields = {}, fixed = {}, progress, lines } = row;
  const known = Object.assign({}, ...[operation.params, operation.query, operation.body].map(propertiesOf)) as Values;
  const made = command(usage, { ...row, summary });
  for (const [syntax, about, parse] of args) made.argument(syntax, about, parse as (text: string) => unknown);
  const ofRow = new Set(made.options);
  if ("cursor" in known) asList(made);
  for (const option of options) made.addOption(option instanceof Option ? option : optionOf(...option));
  const fieldOf = (name: string) => fields[name] ?? (name in fields ? null : fieldFor(name, known));
  const argumentFields = made.registeredArguments.map((argument) => fieldOf(snakeCase(argument.name())));
  const optionFields = made.options
    .filter((option) => !ofRow.has(option))
    .map((option) => [option.attributeName(), fieldOf(snakeCase(option.attributeName()))] as const);
  return made.action(async (...given: unknown[]) => {
    const values = given[argumentFields.length] as JsonOption & Values;
    const input: Values = { ...fixed };
    for (const [at, field] of argumentFields.entries()) setField(input, field, given[at]);
    for (const [name, field] of optionFields) setField(input, field, values[name]);
    const ask = () => call(operation, input as never);
    const reply = await (progress ? withProgress(progress(input), ask) : ask());
    await show(reply, { json: values.json }, (value) => lines(value, input));
  });
}

/** The lines of a list: a column is its header and the cell of an item. */
export function columns<Item>(...of: readonly (readonly [header: string, cell: (item: Item) => Cell])[]) {
  return ({ items, next_cursor = null }: { items: readonly Item[]; next_cursor?: string | null }): string[] => [
    ...table(
      of.map(([header]) => header),
      items.map((item) => of.map(([, cell]) => cell(item))),
    ),
    ...moreLines(next_cursor),
  ];
}

const propertiesOf = (schema: Operation["body"]): object =>
  schema === null || schema === "bytes" ? {} : schema.properties;

function optionOf(flags: string, about: string, parse?: Parse): Option {
  const option = new Option(flags, about);
  return parse ? option.argParser(parse as (text: string, before: unknown) => unknown) : option;
}

/** AGENT is an agent_id or, where an operation takes both, also a sandbox_id. */
function fieldFor(name: string, known: Values): string {
  const names =
    name === "agent" ? ["sandbox", "agent_id"] : ["", "_id", "s", "_ids", "_seconds"].map((end) => name + end);
  const found = names.find((each) => each in known);
  if (found === undefined) throw new Error(`the operation has no field for ${name}`);
  return found;
}

const snakeCase = (name: string): string => name.replace(/[A-Z]/g, (c) => `_${c.toLowerCase()}`).replaceAll("-", "_");

function setField(input: Values, field: string | null | undefined, value: unknown): void {
  if (field === null) Object.assign(input, value);
  // Commander has no null: such a time removes the setting.
  else if (field !== undefined && value !== undefined)
    input[field] = value === "none" && field.endsWith("_seconds") ? null : value;
}
