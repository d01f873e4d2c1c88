/** Usage by room, agent, key or day, the highest first. */

import { useSignal } from "@preact/signals";
import type { Grouping, UsageGroup, UsageReport, UsageTotals } from "../../../shared/api/usage.ts";
import { countText, Foreign } from "../components/text.tsx";
import { part } from "../data/api.ts";
import { roomPath } from "../data/paths.ts";
import { Bar } from "./bar.tsx";
import { dayText, MEASURES, numberText } from "./numbers.ts";

const FEW = 25;
const NAMES: Record<Grouping, string> = { room: "Room", agent: "Agent", key: "Key", day: "Day" };
const NOBODY: Record<Grouping, string> = {
  room: "no room",
  agent: "no agent: drives, and usage without an agent",
  key: "no identified key",
  day: "no day",
};

export function Groups({ by, report: { groups = [], others, totals } }: { by: Grouping; report: UsageReport }) {
  const most = useSignal(FEW);
  const shown = by === "day" ? groups.toReversed() : groups;
  const longest = Math.max(...groups.map(({ totals }) => totals.sandbox_seconds), 0);
  const row = (name: preact.ComponentChildren, key: string, each: UsageTotals, share: number | null) => (
    <tr key={key}>
      <td data-label={NAMES[by]}>{name}</td>
      {MEASURES.map(({ key: measure, name, unit, of }, n) => (
        <td key={measure} data-label={`${name}, ${unit}`} class="num">
          {n === 0 && share !== null ? <Bar share={share} /> : null}{" "}
          <span class={n === 0 ? "of-bar" : undefined}>{numberText(of(each))}</span>
        </td>
      ))}
    </tr>
  );
  return (
    <>
      <div class="scroll">
        <table class="bars">
          <thead>
            <tr>
              <th>{NAMES[by]}</th>
              {MEASURES.map(({ key, name, unit }) => (
                <th key={key} class="num">
                  {name}
                  {unit === name.toLowerCase() ? "" : `, ${unit}`}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {shown
              .slice(0, most.value)
              .map((group) =>
                row(
                  <Name by={by} group={group} />,
                  `${group.id}`,
                  group.totals,
                  longest > 0 ? group.totals.sandbox_seconds / longest : 0,
                ),
              )}
            {others ? row(`${countText(others.group_count)} others`, "others", others.totals, null) : null}
            {row(<b>All</b>, "all", totals, null)}
          </tbody>
        </table>
      </div>
      {shown.length > most.value ? (
        <p>
          <button
            type="button"
            class="button"
            onClick={() => {
              most.value = shown.length;
            }}
          >
            Show all {countText(shown.length)}
          </button>
        </p>
      ) : null}
    </>
  );
}

function Name({ by, group: { id, name } }: { by: Grouping; group: UsageGroup }) {
  if (id === null) return <span class="muted">{NOBODY[by]}</span>;
  const text = <Foreign text={name ?? id} most={80} />;
  if (by === "day") return <>{dayText(id)}</>;
  const href =
    by === "room"
      ? name === null
        ? null
        : roomPath(name)
      : by === "agent"
        ? `/audit?agent=${part(id)}`
        : `/audit?actor_id=${part(id)}`;
  return href === null ? (
    text
  ) : (
    <a data-row href={href} class="name">
      {text}
    </a>
  );
}
