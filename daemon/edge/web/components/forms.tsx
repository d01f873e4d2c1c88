/** Forms, which work without script: fields, buttons, and actions that ask for a confirmation. */
import type { ComponentChildren } from "preact";

type Pairs = readonly (readonly [name: string, value: string])[];

const LOOKS = { plain: "button", main: "button main", bad: "button bad", link: "link" } as const;

interface SubmitProps {
  children: ComponentChildren;
  look?: keyof typeof LOOKS;
  name?: string;
  value?: string;
  formnovalidate?: boolean;
}

export function Submit({ look = "plain", children, ...more }: SubmitProps) {
  return (
    <button type="submit" class={LOOKS[look]} {...more}>
      {children}
    </button>
  );
}

export function Hidden({ fields }: { fields: Pairs }) {
  return fields.map(([name, value]) => <input key={name} type="hidden" name={name} value={value} />);
}

interface PostProps {
  to: string;
  fields?: Readonly<Record<string, string>>;
  class?: string;
  children: ComponentChildren;
}

export function Post({ to, fields = {}, children, ...more }: PostProps) {
  return (
    <form method="post" action={to} {...more}>
      <Hidden fields={Object.entries(fields)} />
      {children}
    </form>
  );
}

export interface FieldProps {
  name: string;
  label: string;
  type?: "text" | "email" | "password";
  value?: string | undefined;
  autocomplete?: string;
  hint?: string;
  isFirst?: boolean;
  isOptional?: boolean;
}

export function Field({ name, label, hint = "", isFirst, isOptional, ...input }: FieldProps) {
  const { type = "text", value = "", autocomplete = "off" } = input;
  const about = hint ? `${name}-hint` : undefined;
  return (
    <p class="field">
      <label for={name}>{label}</label>
      <input
        id={name}
        name={name}
        // The types of preact have no union here.
        type={type as "text"}
        value={value}
        autocomplete={autocomplete}
        required={!isOptional}
        aria-describedby={about}
        autofocus={isFirst}
      />
      {hint ? <small id={about}>{hint}</small> : null}
    </p>
  );
}

interface SelectProps {
  name: string;
  label: string;
  options: Pairs;
  chosen?: string | undefined;
}

export function Select({ name, label, options, chosen = "" }: SelectProps) {
  return (
    <p class="field">
      <label for={name}>{label}</label>
      <select id={name} name={name} value={chosen}>
        {options.map(([value, text]) => (
          <option key={value} value={value}>
            {text}
          </option>
        ))}
      </select>
    </p>
  );
}

interface ConfirmedProps {
  label: string;
  /** The object of the action, for screen readers. */
  of: string;
  to: string;
  fields: Readonly<Record<string, string>>;
  /** The button that executes it: its label, and its name for screen readers if that differs. */
  does: string;
  name?: string;
}

/** An action with a confirmation: the first press opens the button that executes it. */
export function Confirmed({ label, of, to, fields, does, name }: ConfirmedProps) {
  return (
    <details class="sure">
      <summary aria-label={`${label} ${of}`}>{label}</summary>
      <Post to={to} fields={fields}>
        <Submit look="link" aria-label={name}>
          {does}
        </Submit>
      </Post>
    </details>
  );
}

/** Copies the text of the element with this ID. A script shows it. */
export function CopyOf({
  id,
  label = "Copy",
  look = "plain",
}: {
  id: string;
  label?: string;
  look?: "plain" | "main";
}) {
  return (
    <button type="button" class={LOOKS[look]} data-copy={id} hidden>
      {label}
    </button>
  );
}
