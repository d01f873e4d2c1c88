/** Owns what is shown of the item that somebody points at: what it is, how it ended, where more of it is, and what to ask about it. */
import type { TimelineItem } from "../../../../shared/timeline/item.ts";
import { Prompt, State } from "../../parts/parts.tsx";
import { Clock, clockText, Foreign, spanText } from "../../parts/text.tsx";
import { isBad } from "./items.ts";

/** Around what has no page of its own. */
const MOMENT_MS = 1000;

export function pathOf({ ref, agent_id, at, until }: TimelineItem, roomPath: string): string {
  const agent = agent_id === null ? null : `${roomPath}/agents/${encodeURIComponent(agent_id)}`;
  const id = encodeURIComponent(ref?.id ?? "");
  if (ref?.type === "execution" && agent) return `${agent}/commands?exec=${id}`;
  if (ref?.type === "terminal" && agent) return `${agent}/terminal?terminal=${id}`;
  if (ref?.type === "message") return `${roomPath}/messages?message=${id}`;
  if (ref?.type === "barrier") return `${roomPath}/waits?barrier=${id}`;
  if (ref?.type === "file") return `${roomPath}/drive?file=${id}`;
  if (ref?.type === "port") return `${roomPath}/ports`;
  const since = new Date(Date.parse(at) - MOMENT_MS).toISOString();
  const to = new Date(Date.parse(until ?? at) + MOMENT_MS).toISOString();
  return `/audit?room=${roomPath.split("/")[2] ?? ""}&since=${since}&until=${to}`;
}

/** In words for a model: what it is to look at. */
function question(item: TimelineItem, room: string): string {
  const who = item.agent_id === null ? "" : `agent ${item.agent_id} in `;
  const what = `“${item.title}” of ${who}room ${room} at ${clockText(item.at)}`;
  if (isBad(item)) {
    return `Look at ${what}: read what was said and what the audit has around that moment, tell me the cause in two sentences, and propose what to do. Change nothing.`;
  }
  return item.type === "wait"
    ? `Look at ${what}: what was waited for, who could have ended it sooner, and does anybody wait for the same now? Change nothing.`
    : `Tell me what ${what} was for, by the audit and the messages around that moment. Change nothing.`;
}

export function Detail({ item, room, roomPath }: { item: TimelineItem | null; room: string; roomPath: string }) {
  if (!item)
    return <p class="muted detail-none">Point at something, or step through with j and k: what it is stands here.</p>;
  const took = item.until === null ? "goes on" : spanText(Date.parse(item.until) - Date.parse(item.at));
  return (
    <section class="detail-of" aria-label="What is chosen">
      <p>
        <Clock at={item.at} />{" "}
        {item.agent_id === null ? null : (
          <b>
            <Foreign text={item.agent_id} />
          </b>
        )}{" "}
        <Foreign text={item.title} most={500} mono={item.type === "command"} />{" "}
        {item.to.length > 0 && item.type === "wait" ? (
          <span class="muted">
            with <Foreign text={item.to.join(", ")} />
          </span>
        ) : null}
      </p>
      <p>
        {isBad(item) ? (
          <State look="bad">{item.exit_code ? `exit ${item.exit_code}` : item.outcome}</State>
        ) : (
          <State look="ok">ok</State>
        )}
        <span class="muted">
          {item.type}
          {item.kind === "span" ? `, ${took}` : ""}
        </span>{" "}
        · <a href={pathOf(item, roomPath)}>all of it</a>
      </p>
      <Prompt text={question(item, room)} about="reads only" />
    </section>
  );
}
