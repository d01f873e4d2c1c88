/** Components of the hub with state: loading and error displays, and texts to copy. */

import { useSignal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { useEffect } from "preact/hooks";
import type { Problem } from "../../../shared/api/errors.ts";
import { shellLine } from "../../../shared/shell.ts";
import { isAway, refusal } from "../data/live.ts";
import type { Loaded } from "../data/resource.ts";
import { SEEN_MS, say } from "../shell/announcer.ts";
import { Alert } from "./static.tsx";
import { visible } from "./visible.ts";

export { Empty, Facts, Head, type Look, State, Tabs } from "./static.tsx";

/** An error of a call, and what to do next. */
export function Trouble({ problem, again }: { problem: Problem; again?: (() => void) | undefined }) {
  const { detail, title, hint, code, request_id } = problem as Problem & { request_id?: string };
  return (
    <Alert text={visible(detail || title)} hint={hint && visible(hint)}>
      <p class="muted">
        <code>{code}</code>
        {request_id ? (
          <>
            {" "}
            · <code>{request_id}</code>
          </>
        ) : null}
        {again ? (
          <>
            {" "}
            ·{" "}
            <button type="button" class="link" onClick={again}>
              Retry
            </button>
          </>
        ) : null}
      </p>
    </Alert>
  );
}

/** Placeholder while loading: present from the start, and visible only if it takes long. */
export function Loading({ rows = 3 }: { rows?: number }) {
  return (
    <div class="loading" role="status" aria-label="Loading">
      {Array.from({ length: rows }, (_, n) => (
        <i key={n} />
      ))}
    </div>
  );
}

/** Loaded data, its placeholder, or its error. An unavailable room is reported once, by the page. */
export function Shown<T>({
  of: { data, problem, again },
  rows,
  children,
}: {
  of: Loaded<T>;
  rows?: number;
  children: (data: T) => ComponentChildren;
}) {
  return (
    <>
      {problem && !(isAway(problem) && isAway(refusal.value)) ? <Trouble problem={problem} again={again} /> : null}
      {data !== undefined ? children(data) : problem ? null : <Loading {...(rows ? { rows } : {})} />}
    </>
  );
}

interface CopyProps {
  text: string;
  label?: string;
  main?: boolean;
  /** Selects the text in place, for browsers that do not let a page copy. */
  mark?: () => void;
}

export function Copy({ text, label = "Copy", main = false, mark }: CopyProps) {
  const isDone = useSignal(false);
  const reset = () => {
    isDone.value = false;
  };
  useEffect(reset, [text]);
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(text);
      isDone.value = true;
      setTimeout(reset, SEEN_MS);
      say("Copied.");
    } catch {
      mark?.();
      say(
        `The browser did not let this page copy: ${mark ? "the text is marked, copy" : "mark the text and copy"} it.`,
      );
    }
  };
  return (
    <button type="button" class={main ? "button main" : "button"} onClick={copy}>
      {isDone.value ? "Copied" : label}
    </button>
  );
}

/** A text for a model, which users copy instead of clicking. */
export function Prompt({ text, about, children }: { text: string; about?: string; children?: ComponentChildren }) {
  return (
    <div class="ask">
      <p>{children ?? visible(text)}</p>
      <Copy text={text} />
      {about ? <small>{about}</small> : null}
    </div>
  );
}

/** A command line of `roomd` to copy; nothing if a word of it cannot be displayed as it is. `into`: the file for its output. */
export function Line({ words, into }: { words: readonly string[]; into?: string }) {
  const line = shellLine(["roomd", ...words]);
  if (line === null) return null;
  const text = into ? `${line} > ${into}` : line;
  return (
    <div class="ask">
      <code>{text}</code>
      <Copy text={text} />
    </div>
  );
}

/** A choice among a few options, with a button each. */
export function Choices<T extends string>({
  label,
  of,
  at,
  choose,
}: {
  label: string;
  of: readonly (readonly [value: T, name: string])[];
  at: T;
  choose: (value: T) => void;
}) {
  return (
    <fieldset class="choices">
      <legend class="skip">{label}</legend>
      {of.map(([value, name]) => (
        <button key={value} type="button" aria-pressed={value === at} onClick={() => choose(value)}>
          {name}
        </button>
      ))}
    </fieldset>
  );
}
