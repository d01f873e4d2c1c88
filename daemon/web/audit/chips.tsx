/** The filters as chips, which a press removes, and the input that adds another. */
import { useSignal } from "@preact/signals";
import type { TargetedMouseEvent } from "preact";
import { fieldMoment, zoneWords } from "../components/field-time.ts";
import { clockText, Foreign, isUtc } from "../components/text.tsx";
import { setQuery } from "../shell/router.ts";
import { FIELDS, type Field, type Filters, isNamed, momentOf, OUTCOMES, SOURCES } from "./filters.ts";

const NAMES: Record<Field, string> = {
  room: "room",
  agent: "agent",
  event: "event",
  outcome: "outcome",
  source: "door",
  actor_id: "actor",
  request_id: "request",
  trace_id: "trace",
  audit_id: "record",
  since: "since",
  until: "until",
};
const HINTS: Partial<Record<Field, string>> = {
  room: "room's name",
  agent: "agent's name",
  event: "exec. or room.created",
  actor_id: "kid_… or usr_…",
  request_id: "req_…",
  trace_id: "32 hexadecimal digits",
  audit_id: "evt_…",
};
const CHOICES: Partial<Record<Field, readonly string[]>> = { outcome: OUTCOMES, source: SOURCES };
const isMoment = (field: Field) => field === "since" || field === "until";

export function Chips({
  filters: { by, hasReads },
  known,
}: {
  filters: Filters;
  /** Known values to suggest. */
  known: Partial<Record<Field, readonly string[]>>;
}) {
  const field = useSignal<Field>("event");
  const set = FIELDS.filter((each) => by[each] !== undefined);
  const add = (event: SubmitEvent) => {
    event.preventDefault();
    const form = event.currentTarget as HTMLFormElement;
    const typed = String(new FormData(form).get("value") ?? "").trim();
    const value = isMoment(field.value) ? inUtc(typed) : typed;
    if (!value) return;
    setQuery({ [field.value]: value, open: null });
    const text = form.elements.namedItem("value");
    if (text instanceof HTMLInputElement) text.value = "";
  };
  const takeLast = (event: KeyboardEvent) => {
    const last = set.at(-1);
    // A partly typed time is an empty value, and a held key was meant for the typed text.
    if (event.key !== "Backspace" || event.repeat || isMoment(field.value) || !last) return;
    if ((event.currentTarget as HTMLInputElement).value === "") setQuery({ [last]: null });
  };
  const take = (each: Field, { currentTarget, detail }: TargetedMouseEvent<HTMLElement>) => {
    // By the keyboard: the focus moves to the next chip.
    if (detail === 0) {
      const next = currentTarget.closest("li")?.nextElementSibling?.querySelector("button");
      (next ?? currentTarget.closest("search")?.querySelector<HTMLElement>("[data-search]"))?.focus();
    }
    setQuery({ [each]: null, open: null });
  };
  const choices = CHOICES[field.value];
  const label = `Value of ${NAMES[field.value]}`;
  return (
    <search class="filters audit-filters">
      {set.length > 0 ? (
        <ul class="chips" aria-label="Filters">
          {set.map((each) => (
            <li key={each}>
              <button
                type="button"
                class="chip"
                aria-label={`Remove the filter ${NAMES[each]} ${by[each]}`}
                onClick={(event) => take(each, event)}
              >
                <span class="muted">{NAMES[each]}</span>{" "}
                {isMoment(each) ? (
                  clockText(momentOf(by[each] ?? ""))
                ) : (
                  <Foreign text={by[each] ?? ""} most={60} mono />
                )}
                <span aria-hidden="true"> ×</span>
              </button>
            </li>
          ))}
        </ul>
      ) : null}
      <form class="add-filter" onSubmit={add}>
        <select
          aria-label="Filter by"
          value={field.value}
          onChange={({ currentTarget }) => {
            field.value = currentTarget.value as Field;
          }}
        >
          {FIELDS.map((each) => (
            <option key={each} value={each}>
              {NAMES[each]}
            </option>
          ))}
        </select>
        {choices ? (
          <select key={field.value} name="value" aria-label={label} data-search>
            {choices.map((each) => (
              <option key={each}>{each}</option>
            ))}
          </select>
        ) : (
          <input
            key={field.value}
            name="value"
            data-search
            aria-label={isMoment(field.value) ? `${label}, ${zoneWords(isUtc.value)}` : label}
            list="audit-known"
            maxLength={128}
            onKeyDown={takeLast}
            {...(isMoment(field.value)
              ? { type: "datetime-local", step: 1 }
              : { type: "text", placeholder: HINTS[field.value], autocomplete: "off", spellcheck: false })}
          />
        )}
        <button type="submit" class="button">
          Add filter
        </button>
      </form>
      <datalist id="audit-known">
        {(known[field.value] ?? []).map((each) => (
          <option key={each} value={each} />
        ))}
      </datalist>
      <label class="reads">
        <input
          type="checkbox"
          checked={hasReads}
          disabled={isNamed(by)}
          onChange={({ currentTarget }) => setQuery({ reads: currentTarget.checked ? "shown" : null })}
        />{" "}
        include reads
      </label>
    </search>
  );
}

/** Value of a local time field, as the API takes it; null if it is invalid. */
function inUtc(text: string): string | null {
  const at = fieldMoment(text, isUtc.value);
  return Number.isNaN(at) ? null : new Date(at).toISOString();
}
