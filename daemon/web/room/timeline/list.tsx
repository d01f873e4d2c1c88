/** Owns the timeline as a list: the same for those who do not see it drawn, the newest first. */
import type { TimelineItem } from "../../../../shared/timeline/item.ts";
import { State } from "../../parts/parts.tsx";
import { Clock, Foreign, spanText } from "../../parts/text.tsx";
import { pathOf } from "./detail.tsx";
import { isBad } from "./items.ts";

/** More than one reads; older ones are on other pages of the window. */
const MOST = 500;

export function List({ items, room }: { items: readonly TimelineItem[]; room: string }) {
  const shown = items.slice(-MOST).reverse();
  return (
    <>
      <div class="scroll">
        <table>
          <thead>
            <tr>
              <th>When</th>
              <th>Who</th>
              <th>What</th>
              <th>To</th>
              <th>Outcome</th>
              <th class="num">Took</th>
            </tr>
          </thead>
          <tbody>
            {shown.map((item) => (
              <tr key={item.seq ?? `${item.type} ${item.at}`}>
                <td data-label="When" class="tight">
                  <a data-row href={pathOf(item, room)}>
                    <Clock at={item.at} />
                  </a>
                </td>
                <td data-label="Who">
                  {item.agent_id === null ? (
                    <span class="muted">{item.lane}</span>
                  ) : (
                    <Foreign text={item.agent_id} most={60} />
                  )}
                </td>
                <td data-label="What">
                  <Foreign text={item.title} mono={item.type === "command"} />
                </td>
                <td data-label="To">{item.to.length > 0 ? <Foreign text={item.to.join(", ")} most={80} /> : null}</td>
                <td data-label="Outcome" class="tight">
                  {isBad(item) ? (
                    <State look="bad">{item.exit_code ? `exit ${item.exit_code}` : item.outcome}</State>
                  ) : (
                    <State look="ok">ok</State>
                  )}
                </td>
                <td data-label="Took" class="num tight">
                  {item.kind === "mark"
                    ? "–"
                    : item.until === null
                      ? "goes on"
                      : spanText(Date.parse(item.until) - Date.parse(item.at))}
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      {items.length > MOST ? (
        <p class="muted">
          The newest {MOST} of {items.length} are shown: choose a shorter time, an agent or a kind.
        </p>
      ) : null}
    </>
  );
}
