/**
 * Validation of a request's fields against its operation: path, query and body in one pass, with all invalid fields in one error. Also
 * reads `x_json` (a JSON string) as `x`, and text from paths and queries as numbers and booleans.
 */

import type { TObject, TSchema } from "@sinclair/typebox";
import { type TypeCheck, TypeCompiler, type ValueError, ValueErrorType } from "@sinclair/typebox/compiler";
import { NONE } from "../../../shared/api/contract.ts";
import { ERRORS, type ErrorCode } from "../../../shared/api/errors.ts";
import type { RuleBreak } from "../../core/call/operation.ts";
import { parseJson } from "../../core/json.ts";
import { ServiceError } from "../../core/service-error.ts";
import { JsonComplexity } from "./json-complexity.ts";

export interface CheckedInput {
  input: Record<string, unknown>;
  bad: RuleBreak[];
}

export interface InputCheck {
  check(params: Record<string, string>, query: Record<string, string>, body: Record<string, unknown>): CheckedInput;
}

const MAX_ERRORS = 50;
/** Limit for the list of a batch call: more than the list can have. */
const MAX_OF_MANY = 300;
const MAX_SHOWN = 200;

/** Compiles an operation's schemas once. */
export function makeInputCheck(operation: {
  params: TObject;
  query: TObject;
  body: TObject | "bytes" | null;
  many?: string;
}): InputCheck {
  const parts = {
    params: compile(operation.params),
    query: Object.keys(operation.query.properties).length === 0 ? null : compile(operation.query),
    body: operation.body === null || operation.body === "bytes" ? null : compile(operation.body, operation.many),
  };
  return {
    check: (params, query, body) => {
      const bad: RuleBreak[] = [];
      const read = parts.body && readJsonFields(parts.body.schema, fewIn(parts.body, body), bad);
      const input = { ...checkPart(parts.params, fromText(parts.params, params), bad) };
      if (parts.query)
        Object.assign(input, checkPart(parts.query, fromText(parts.query, knownIn(parts.query, query)), bad));
      if (parts.body && read) Object.assign(input, checkPart(parts.body, read.fields, bad, read.spelled));
      return { input, bad };
    },
  };
}

/** Unknown query parameters are ignored; unknown body fields are refused. */
function knownIn({ schema }: InputPart, query: Record<string, string>): Record<string, string> {
  return Object.fromEntries(Object.entries(query).filter(([name]) => Object.hasOwn(schema.properties, name)));
}

/** At most as many unknown fields as a response lists: a check of very many would take long. */
function fewIn({ schema }: InputPart, body: Record<string, unknown>): Record<string, unknown> {
  const names = Object.keys(body);
  const known = names.filter((name) => Object.hasOwn(schema.properties, name));
  if (names.length - known.length <= MAX_ERRORS) return body;
  const unknown = names.filter((name) => !Object.hasOwn(schema.properties, name)).slice(0, MAX_ERRORS);
  return Object.fromEntries([...known, ...unknown].map((name) => [name, body[name]]));
}

/** The problem code for these bad fields: their common code if all agree, else validation_failed. */
export function problemCodeOf(bad: readonly RuleBreak[]): ErrorCode {
  const codes = new Set(
    bad.map((field) => field.problem ?? (Object.hasOwn(ERRORS, field.code) ? (field.code as ErrorCode) : null)),
  );
  const [only] = codes;
  return codes.size === 1 && only ? only : "validation_failed";
}

/** The error for these invalid fields. */
export function brokenRules(bad: readonly RuleBreak[]): ServiceError {
  const [first] = bad;
  const only = bad.length === 1 ? first : undefined;
  return new ServiceError(problemCodeOf(bad), {
    detail: only ? only.message : `${bad.length} fields are not valid; see errors.`,
    errors: bad.map(({ problem: _, details: __, ...shown }) => shown),
    ...(only?.details ? { details: only.details } : {}),
  });
}

/** For input that does not arrive by a transport: validates fields by the operation's rules. Throws validation_failed and the like. */
export function requireBody({ body }: { body: TObject }, fields: Record<string, unknown>): void {
  const { bad } = makeInputCheck({ params: NONE, query: NONE, body }).check({}, {}, fields);
  if (bad.length > 0) throw brokenRules(bad);
}

interface InputPart {
  schema: TObject;
  compiled: TypeCheck<TObject>;
  /** Whether all fields are text. */
  isText: boolean;
  /** Lists of text with unique items. */
  distinct: readonly string[];
  /** The list of a batch call, with separately checked objects, and the lists of unique texts within each of them. */
  many: { name: string; distinct: readonly string[] } | null;
}

/** Compiles a schema without uniqueItems: the compiler's own check takes longer for a list of names than all other processing of it. */
function compile(schema: TObject, manyName?: string): InputPart {
  const own = withoutDistinct(schema);
  const list = manyName === undefined ? undefined : schema.properties[manyName];
  const isText = Object.values(schema.properties).every(({ type }) => type === "string");
  if (manyName === undefined || !list)
    return { schema, compiled: TypeCompiler.Compile(own.form), isText, ...own, many: null };
  const item = withoutDistinct(list.items as TObject);
  const properties = { ...own.form.properties, [manyName]: { ...list, items: item.form } as TSchema };
  const compiled = TypeCompiler.Compile({ ...own.form, properties });
  return { schema, compiled, isText, ...own, many: { name: manyName, distinct: item.distinct } };
}

/** An object's schema for the compiler, and the fields that are checked separately for uniqueness. */
function withoutDistinct(schema: TObject): { form: TObject; distinct: string[] } {
  const distinct = Object.keys(schema.properties).filter((name) => formsOf(schema.properties[name]).some(isDistinct));
  const properties = Object.fromEntries(
    Object.entries(schema.properties).map(([name, form]) => [name, distinct.includes(name) ? mayRepeat(form) : form]),
  );
  return { form: { ...schema, properties }, distinct };
}

const formsOf = (form?: TSchema): TSchema[] => (form?.anyOf as TSchema[] | undefined) ?? (form ? [form] : []);
const isDistinct = (form: TSchema): boolean => form.uniqueItems === true;

function mayRepeat({ uniqueItems: _, ...form }: TSchema): TSchema {
  return (form.anyOf ? { ...form, anyOf: (form.anyOf as TSchema[]).map(mayRepeat) } : form) as TSchema;
}

/** Adds errors to `bad` and returns the valid fields. `spelled` has the fields that came as `x_json`. */
function checkPart(
  part: InputPart,
  value: Record<string, unknown>,
  bad: RuleBreak[],
  spelled: ReadonlyMap<string, string> = NONE_SPELLED,
): Record<string, unknown> {
  const isShaped = part.compiled.Check(value);
  if (isShaped && part.distinct.length === 0 && part.many === null) return value;
  const wrong = new Wrong(part.many?.name);
  if (!isShaped) addMisshapen(part, value, bad, spelled, wrong);
  addRepetitions(part, wrong.right(value), bad, spelled, wrong);
  return wrong.right(value);
}

const NONE_SPELLED: ReadonlyMap<string, string> = new Map();

/** Adds the values of another shape than the schema's. */
function addMisshapen(
  part: InputPart,
  value: Record<string, unknown>,
  bad: RuleBreak[],
  spelled: ReadonlyMap<string, string>,
  wrong: Wrong,
): void {
  const known = new Set<string>(bad.map((field) => field.field));
  for (const error of part.compiled.Errors(value)) {
    const top = topOf(error.path);
    // A field is reported once, for the first rule that it breaks.
    const field = fieldOf(error.path);
    if (known.has(field) || (top !== field && known.has(top))) continue;
    known.add(field);
    wrong.add(error.path);
    const asJson = spelled.get(top);
    const shown = clip(asJson === undefined ? field : asJson + field.slice(top.length));
    const described = describe(error, shown, part.schema);
    bad.push(asJson === undefined ? described : { ...described, problem: ownCode(part.schema, asJson) });
    if (bad.length < (part.many ? MAX_OF_MANY : MAX_ERRORS)) continue;
    // Unchecked fields may be invalid as well.
    wrong.addAll();
    return;
  }
}

/** The invalid fields of an object; of the batch list, the fields of each of its objects. */
class Wrong {
  readonly #many: string | undefined;
  readonly #fields = new Set<string>();
  /** By index in the list; null if the item is not an object. */
  readonly #items = new Map<number, Set<string> | null>();

  constructor(many: string | undefined) {
    this.#many = many;
  }

  /** `/messages/3/topic` */
  add(path: string): void {
    const [top = "", at, field] = path.split("/").slice(1).map(unescapePointer);
    if (top !== this.#many || at === undefined) {
      this.#fields.add(top);
      return;
    }
    const known = this.#items.get(Number(at));
    if (known === null) return;
    this.#items.set(Number(at), field === undefined ? null : (known ?? new Set()).add(field));
  }

  addAll(): void {
    if (this.#many !== undefined) this.#fields.add(this.#many);
  }

  /** The fields that are right. */
  right(value: Record<string, unknown>): Record<string, unknown> {
    if (this.#fields.size === 0 && this.#items.size === 0) return value;
    const right = without(value, this.#fields);
    const list = this.#many === undefined ? undefined : right[this.#many];
    if (this.#many === undefined || !Array.isArray(list) || this.#items.size === 0) return right;
    const rightOf = (item: unknown, at: number) => {
      const fields = this.#items.get(at);
      return fields === undefined ? item : fields === null ? {} : without(item as Record<string, unknown>, fields);
    };
    return { ...right, [this.#many]: list.map(rightOf) };
  }
}

const without = (value: Record<string, unknown>, names: ReadonlySet<string>) =>
  Object.fromEntries(Object.entries(value).filter(([name]) => !names.has(name)));

/** Adds lists with duplicate items. */
function addRepetitions(
  { distinct, many }: InputPart,
  value: Record<string, unknown>,
  bad: RuleBreak[],
  spelled: ReadonlyMap<string, string>,
  wrong: Wrong,
): void {
  const look = (list: unknown, path: string, field: string) => {
    if (!Array.isArray(list) || new Set(list).size === list.length) return;
    bad.push({ field, code: "repeated", message: `${field} has a duplicate.` });
    wrong.add(path);
  };
  for (const name of distinct) look(value[name], `/${name}`, spelled.get(name) ?? name);
  const items = many && value[many.name];
  if (!many || many.distinct.length === 0 || !Array.isArray(items)) return;
  for (const [at, item] of items.entries()) {
    for (const name of many.distinct) {
      const field = `${spelled.get(many.name) ?? many.name}[${at}].${name}`;
      look((item as Record<string, unknown>)[name], `/${many.name}/${at}/${name}`, field);
    }
  }
}

/** Converts text to the schema's type; text that cannot be converted stays text and fails the check. */
function fromText({ schema, isText }: InputPart, values: Record<string, string>): Record<string, unknown> {
  if (isText) return values;
  return Object.fromEntries(
    Object.entries(values).map(([name, text]) => {
      const type: unknown = Object.hasOwn(schema.properties, name) ? schema.properties[name]?.type : undefined;
      if (type === "integer" && /^-?\d{1,15}$/.test(text)) return [name, Number(text)];
      if (type === "boolean" && (text === "true" || text === "1")) return [name, true];
      if (type === "boolean" && (text === "false" || text === "0")) return [name, false];
      return [name, text];
    }),
  );
}

/** `x_json` becomes `x`; both together are a conflict. */
function readJsonFields(schema: TObject, body: Record<string, unknown>, bad: RuleBreak[]) {
  if (!Object.keys(body).some((name) => name.endsWith("_json"))) return { fields: body, spelled: NONE_SPELLED };
  const fields = new Map(Object.entries(body));
  const spelled = new Map<string, string>();
  const isField = (name: string) => Object.hasOwn(schema.properties, name);
  for (const [asJson, value] of [...fields]) {
    const name = asJson.endsWith("_json") ? asJson.slice(0, -"_json".length) : asJson;
    if (name === asJson || !isField(asJson) || !isField(name)) continue;
    if (fields.has(name)) {
      bad.push({ field: asJson, code: "conflicting_fields", message: `Send either ${name} or ${asJson}, not both.` });
      fields.delete(asJson);
      continue;
    }
    if (typeof value !== "string") continue;
    fields.delete(asJson);
    new JsonComplexity().add(Buffer.from(value));
    try {
      fields.set(name, parseJson(value));
      spelled.set(name, asJson);
    } catch {
      const problem = ownCode(schema, asJson);
      bad.push({ field: asJson, code: problem ?? "invalid_json", message: `${asJson} is not valid JSON.`, problem });
    }
  }
  return { fields: Object.fromEntries(fields), spelled };
}

function describe(error: ValueError, field: string, schema: TObject): RuleBreak {
  const own = codeOf(error.schema) ?? ownCode(schema, topOf(error.path));
  const base = { field, problem: own };
  const { minimum, maximum, minLength, maxLength, minItems, maxItems, pattern } = error.schema;
  switch (error.type) {
    case ValueErrorType.ObjectAdditionalProperties: {
      const [names] = Object.keys(error.schema.patternProperties ?? {});
      if (names !== undefined) {
        return { ...base, code: "pattern", message: `${field} has a name that does not match ${names}.` };
      }
      const name = unescapePointer(error.path.split("/").at(-1) ?? "");
      const place = field.endsWith(name) ? field.slice(0, -name.length) : "";
      const nearest = nearestOf(name, Object.keys(error.schema.properties ?? {}));
      return {
        field,
        code: "unknown_field",
        message: `There is no field ${field}.${nearest ? ` Did you mean ${place}${nearest}?` : ""}`,
        problem: "unknown_field",
      };
    }
    case ValueErrorType.ObjectRequiredProperty:
      return { field, code: "required", message: `${field} is required.` };
    case ValueErrorType.IntegerMinimum:
    case ValueErrorType.IntegerMaximum:
    case ValueErrorType.NumberMinimum:
    case ValueErrorType.NumberMaximum: {
      const bounds = [
        minimum === undefined ? "" : `at least ${minimum}`,
        maximum === undefined ? "" : `at most ${maximum}`,
      ];
      return {
        ...base,
        code: "out_of_range",
        message: `${field} must be ${bounds.filter(Boolean).join(" and ")}.`,
        ...(minimum === undefined ? {} : { min: minimum }),
        ...(maximum === undefined ? {} : { max: maximum }),
      };
    }
    case ValueErrorType.StringPattern:
      return { ...base, code: "pattern", message: `${field} must match ${pattern}.` };
    case ValueErrorType.StringMinLength:
    case ValueErrorType.StringMaxLength:
      return { ...base, code: "length", message: `${field} must have ${between(minLength, maxLength)} characters.` };
    case ValueErrorType.ArrayMinItems:
    case ValueErrorType.ArrayMaxItems:
      return { ...base, code: "length", message: `${field} must have ${between(minItems, maxItems)} entries.` };
    case ValueErrorType.ObjectMaxProperties:
      return { ...base, code: "length", message: `${field} must have at most ${error.schema.maxProperties} entries.` };
    default:
      return { field, code: "wrong_type", message: `${field} must be ${typeName(error.schema)}.` };
  }
}

/** The code that a schema gives to its own rule. */
function codeOf(schema: TSchema | undefined): ErrorCode | undefined {
  const code: unknown = schema?.code;
  return typeof code === "string" && Object.hasOwn(ERRORS, code) ? (code as ErrorCode) : undefined;
}

/** The code that a field gives to the rules about it. */
function ownCode(schema: TObject, field: string): ErrorCode | undefined {
  return Object.hasOwn(schema.properties, field) ? codeOf(schema.properties[field]) : undefined;
}

function between(min: number | undefined, max: number | undefined): string {
  return [min === undefined ? "" : `at least ${min}`, max === undefined ? "" : `at most ${max}`]
    .filter(Boolean)
    .join(" and ");
}

function typeName(schema: TSchema): string {
  if (Array.isArray(schema.enum)) return `one of ${schema.enum.join(", ")}`;
  if (schema.anyOf) return (schema.anyOf as TSchema[]).map(typeName).join(" or ");
  if (schema.type === "integer") return "a whole number";
  if (schema.type === "array") return "a list";
  return schema.type === undefined ? "of a different form" : `of type ${schema.type}`;
}

/** Callers may send names of any length; this much of them is returned. */
function clip(field: string): string {
  return field.length <= MAX_SHOWN ? field : `${field.slice(0, MAX_SHOWN)}…`;
}

function topOf(path: string): string {
  return unescapePointer(path.split("/")[1] ?? "");
}

/** `/env/PATH` → `env.PATH`, `/argv/3` → `argv[3]`. */
function fieldOf(path: string): string {
  return path
    .split("/")
    .slice(1)
    .map(unescapePointer)
    .reduce((field, part) => (/^\d+$/.test(part) ? `${field}[${part}]` : field === "" ? part : `${field}.${part}`), "");
}

function unescapePointer(text: string): string {
  return text.replaceAll("~1", "/").replaceAll("~0", "~");
}

/** The known name with the smallest edit distance, if that is small and less than its length. */
export function nearestOf(name: string, known: readonly string[]): string | null {
  // A name of that length is not a typing error, and the comparison would take long.
  if (name.length > 64) return null;
  let best: string | null = null;
  let least = Math.min(name.length, Math.max(2, Math.floor(name.length / 3)) + 1);
  for (const candidate of known) {
    const distance = editDistance(name, candidate);
    if (distance < least) [best, least] = [candidate, distance];
  }
  return best;
}

function editDistance(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, index) => index);
  for (let i = 1; i <= a.length; i++) {
    const next = [i];
    for (let j = 1; j <= b.length; j++) {
      const replace = (row[j - 1] ?? 0) + (a[i - 1] === b[j - 1] ? 0 : 1);
      next.push(Math.min(replace, (row[j] ?? 0) + 1, (next[j - 1] ?? 0) + 1));
    }
    row = next;
  }
  return row[b.length] ?? 0;
}
