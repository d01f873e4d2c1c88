/** The largest values that a schema accepts: the largest input of an operation according to its own description. */
import type { TSchema } from "@sinclair/typebox";

/** More texts than these are no larger a request: a body may have 1 MiB. */
const MAX_ITEMS = 1_000;
const MAX_CHARACTERS = 60_000;

/** `known` are values of fields that name existing objects; a wait is short, since it causes no work. */
export function largestOf(name: string, schema: TSchema, known: Record<string, string>): unknown {
  if (name in known && schema.type === "string") return known[name];
  if (/(^|_)(wait|timeout)_ms$/.test(name)) return 1;
  if (name === "follow") return false;
  if (schema.enum) return schema.enum.at(-1);
  if (schema.anyOf) return largestOf(name, schema.anyOf[0], known);
  if ("const" in schema) return schema.const;
  switch (Array.isArray(schema.type) ? schema.type[0] : schema.type) {
    case "string":
      return textOf(schema);
    case "integer":
    case "number":
      return Math.min(schema.maximum ?? 2 ** 31, 2 ** 31);
    case "boolean":
      return true;
    case "array":
      return Array.from({ length: Math.min(schema.maxItems ?? MAX_ITEMS, MAX_ITEMS) }, (_, n) =>
        itemOf(largestOf("", schema.items, known), n),
      );
    case "object":
      return objectOf(schema, known);
    default:
      return "x".repeat(MAX_CHARACTERS);
  }
}

/** Different texts, for items that must differ. */
function itemOf(item: unknown, n: number): unknown {
  return typeof item === "string" ? `agent-${n}` : item;
}

function textOf({ pattern, maxLength = MAX_CHARACTERS, examples }: TSchema): string {
  if (pattern !== undefined) return String(examples?.[0] ?? "agent-0");
  return "x".repeat(Math.min(maxLength, MAX_CHARACTERS));
}

function objectOf(schema: TSchema, known: Record<string, string>): Record<string, unknown> {
  const own = Object.entries<TSchema>(schema.properties ?? {});
  const required = own.filter(([name]) => (schema.required ?? []).includes(name));
  const fields = required.map(([name, each]) => [name, largestOf(name, each, known)] as const);
  const [values] = Object.values<TSchema>(schema.patternProperties ?? {});
  const others = values ? Math.min(schema.maxProperties ?? MAX_ITEMS, MAX_ITEMS) : 0;
  const named = Array.from(
    { length: others },
    (_, n) => [`name-${n}`, largestOf("", values ?? schema, known)] as const,
  );
  return Object.fromEntries([...fields, ...named]);
}
