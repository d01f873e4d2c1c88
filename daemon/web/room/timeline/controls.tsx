/** Controls of a timeline: the span, whether it follows the present, and filters. All of it is in the address. */
import type { Signal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import { TIMELINE_TYPES } from "../../../../shared/timeline/item.ts";
import { fieldMoment, fieldText, zoneWords } from "../../components/field-time.ts";
import { Choices } from "../../components/parts.tsx";
import { isUtc } from "../../components/text.tsx";
import { setQuery } from "../../shell/router.ts";
import { lookAt, SPANS, type View, zoom } from "./view.ts";

interface ControlsProps {
  view: View;
  agents: readonly string[];
  came: Signal<number>;
  now: number;
  /** Whether nothing comes any more. */
  hasEnded: boolean;
}

export function Controls({ view, agents, came, now, hasEnded }: ControlsProps) {
  const isPaused = view.at !== null;
  const before = useRef(0);
  if (!isPaused) before.current = came.value;
  const fresh = came.value - before.current;
  useEffect(() => {
    const press = (event: KeyboardEvent) => {
      if (/^(?:INPUT|SELECT|TEXTAREA)$/.test((event.target as Element).tagName) || event.ctrlKey || event.metaKey)
        return;
      if (event.key === "+" || event.key === "=") zoom(-1);
      else if (event.key === "-") zoom(1);
      else return;
      event.preventDefault();
    };
    addEventListener("keydown", press);
    return () => removeEventListener("keydown", press);
  }, []);
  return (
    <search class="filters" aria-label="Timeline">
      <Choices
        label="Time range"
        of={SPANS.map(([name, label]) => [name, label] as const)}
        at={view.span}
        choose={(span) => setQuery({ span })}
      />
      {hasEnded && !isPaused ? null : (
        <button type="button" class="button" onClick={() => lookAt(isPaused ? null : now)}>
          {hasEnded ? "To the end" : isPaused ? (fresh > 0 ? `Continue: ${fresh} new` : "Continue") : "Pause"}
        </button>
      )}
      <label>
        at{" "}
        <input
          type="datetime-local"
          step={1}
          aria-label={`Jump to a time, ${zoneWords(isUtc.value)}`}
          value={fieldText(view.at ?? now, isUtc.value)}
          onChange={({ currentTarget: { value } }) => {
            const moment = fieldMoment(value, isUtc.value);
            if (!Number.isNaN(moment)) lookAt(moment);
          }}
        />
      </label>
      <Select label="Agent" all="all agents" of={agents} at={view.agent} choose={(agent) => setQuery({ agent })} />
      <Select label="Kind" all="everything" of={TIMELINE_TYPES} at={view.type} choose={(type) => setQuery({ type })} />
      <label>
        <input
          type="checkbox"
          checked={view.isFolded}
          onChange={({ currentTarget }) => setQuery({ idle: currentTarget.checked ? null : "shown" })}
        />{" "}
        collapse idle time
      </label>
      <Choices
        label="Shown as"
        of={[
          ["lanes", "lanes"],
          ["list", "list"],
        ]}
        at={view.isList ? "list" : "lanes"}
        choose={(as) => setQuery({ as: as === "list" ? as : null })}
      />
    </search>
  );
}

function Select({
  label,
  all,
  of,
  at,
  choose,
}: {
  label: string;
  all: string;
  of: readonly string[];
  at: string;
  choose(value: string): void;
}) {
  return (
    <select aria-label={label} value={at} onChange={({ currentTarget }) => choose(currentTarget.value)}>
      <option value="">{all}</option>
      {of.map((each) => (
        <option key={each} value={each}>
          {each}
        </option>
      ))}
    </select>
  );
}
