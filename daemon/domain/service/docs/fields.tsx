/** Schemas as tables for people: a row for each field, with its type and its constraints. */
import { type ComponentChildren, Fragment } from "preact";
import type { Schema } from "./document.ts";

const DEEPEST = 4;

interface FieldTableProps {
  title: string;
  heads: readonly string[];
  children: ComponentChildren;
}

export function FieldTable({ title, heads, children }: FieldTableProps) {
  return (
    <>
      <h4>{title}</h4>
      <table>
        <thead>
          <tr>
            {heads.map((head) => (
              <th key={head} scope="col">
                {head}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>{children}</tbody>
      </table>
    </>
  );
}

/** Fields of an object, each followed by the fields of its nested objects; `where` is empty for fields of a response. */
export function rowsOf(schema: Schema, location: string, prefix = "", depth = 1): ComponentChildren[] {
  return Object.entries(schema.properties ?? {}).flatMap(([name, inner]) => {
    const full = prefix + name;
    const isRequired = (schema.required ?? []).includes(name);
    const row = <FieldRow key={full} name={full} location={location} isRequired={isRequired} schema={inner} />;
    const object = [inner, ...(inner.anyOf ?? [])].map((each) => each.items ?? each).find((each) => each.properties);
    const below = `${prefix}${name}${inner.items ? "[]" : ""}.`;
    return [row, ...(object && depth < DEEPEST ? rowsOf(object, location, below, depth + 1) : [])];
  });
}

interface FieldRowProps {
  name: string;
  /** Empty for fields of a response. */
  location: string;
  isRequired: boolean;
  schema: Schema;
}

export function FieldRow({ name, location, isRequired, schema }: FieldRowProps) {
  const about = [schema.description ?? "", ...rulesOf(schema)].filter(Boolean);
  const isOfAnswer = location === "";
  const mark = isOfAnswer === isRequired ? "" : isOfAnswer ? "may be absent" : "required";
  return (
    <tr>
      <td>
        <code>{name}</code> {mark ? <span class="muted">{mark}</span> : null}
      </td>
      {isOfAnswer ? null : <td>{location}</td>}
      <td>{typeOf(schema)}</td>
      <td>
        {about.map((each, n) => (
          <Fragment key={each}>
            {n > 0 ? <br /> : null}
            {each}
          </Fragment>
        ))}
      </td>
    </tr>
  );
}

export function typeOf(schema: Schema): string {
  if (schema.anyOf) return [...new Set(schema.anyOf.map(typeOf))].join(" or ");
  if (Array.isArray(schema.type)) return orNull(schema);
  if (schema.enum) return schema.enum.join(" · ");
  if (schema.type === "array") return `list of ${typeOf(schema.items ?? {})}`;
  return schema.format ?? schema.type ?? "anything";
}

function orNull({ type = [], enum: words, ...schema }: Schema): string {
  const [something] = type;
  const some = {
    ...schema,
    type: something ?? "null",
    ...(words ? { enum: words.filter((word) => word !== null) } : {}),
  };
  return `${typeOf(some)} or null`;
}

/** Constraints of a value, in words. */
function rulesOf(schema: Schema): string[] {
  const { minimum, maximum, minLength, maxLength, minItems, maxItems, pattern, anyOf = [] } = schema;
  return [
    rangeOf("", minimum, maximum),
    rangeOf(" characters", minLength, maxLength),
    rangeOf(" items", minItems, maxItems),
    pattern === undefined ? "" : `Matches ${pattern}`,
    ...anyOf.flatMap(rulesOf),
  ].filter((rule, index, all) => rule !== "" && all.indexOf(rule) === index);
}

function rangeOf(suffix: string, least?: number, most?: number): string {
  if (suffix !== "" && least === 1 && most === undefined) return "Not empty.";
  if (least !== undefined && most !== undefined) return `${least} to ${most}${suffix}.`;
  if (least !== undefined) return `At least ${least}${suffix}.`;
  return most === undefined ? "" : `At most ${most}${suffix}.`;
}
