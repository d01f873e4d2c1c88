/** An agent's waits, and the agents that wait for it. */

import type { roomWaits, Wait } from "../../../shared/api/overview/overview.ts";
import { State } from "../components/parts.tsx";
import { Foreign, Since } from "../components/text.tsx";
import { WAIT_WORDS } from "../components/waits.ts";
import { get, part } from "../data/api.ts";
import { agentPath, roomPath } from "../data/paths.ts";

export type Waits = Awaited<ReturnType<typeof loadWaits>>;

export const loadWaits = (roomId: string, signal: AbortSignal) =>
  get<typeof roomWaits>(`/v1/rooms/${part(roomId)}/waits`, {}, signal);

/** Maximum of names in a line. */
const MAX_NAMED = 5;

export function WaitsOf({ waits, room, agent }: { waits: Waits; room: string; agent: string }) {
  const own = waits.waits.filter(({ agent_id, type }) => agent_id === agent && type !== "command");
  const others = waits.waits.filter(({ agent_id, on }) => agent_id !== agent && on.includes(agent));
  return (
    <>
      {own.length + others.length === 0 ? (
        <p class="now">
          <State look="quiet">not waiting</State>
          <State look="quiet">not blocking any agent</State>
        </p>
      ) : (
        <ul class="waits">
          {own.map((wait) => (
            <li key={`${wait.type} ${wait.id} ${wait.since}`}>
              <State look="wait">waits</State>
              <What wait={wait} room={room} />{" "}
              {wait.on.length > 0 ? (
                <>
                  from <Agents of={wait.on} room={room} />
                </>
              ) : null}
              <span class="muted">
                {" "}
                for <Since at={wait.since} />
                {wait.held ? ", in a call" : ""}
              </span>
            </li>
          ))}
          {others.map((wait) => (
            <li key={`${wait.agent_id} ${wait.type} ${wait.id}`}>
              <State look="wait">waited for</State>
              <Agents of={[wait.agent_id]} room={room} /> waits for it: <What wait={wait} room={room} />
              <span class="muted">
                {" "}
                for <Since at={wait.since} />
              </span>
            </li>
          ))}
        </ul>
      )}
    </>
  );
}

function What({ wait: { type, id, about }, room }: { wait: Wait; room: string }) {
  const to = type === "barrier" ? `waits?barrier=${part(id ?? "")}` : `messages?message=${part(id ?? "")}`;
  return (
    <>
      {WAIT_WORDS[type]}{" "}
      {id === null ? null : (
        <a href={roomPath(room, to)}>
          <Foreign text={id} most={60} mono />
        </a>
      )}{" "}
      {about ? (
        <span class="muted">
          (<Foreign text={about} most={80} />)
        </span>
      ) : null}
    </>
  );
}

function Agents({ of, room }: { of: readonly string[]; room: string }) {
  return (
    <>
      {of.slice(0, MAX_NAMED).map((agent, n) => (
        <span key={agent}>
          {n > 0 ? ", " : ""}
          <a href={agentPath(room, agent)}>
            <Foreign text={agent} most={60} />
          </a>
        </span>
      ))}
      {of.length > MAX_NAMED ? ` and ${of.length - MAX_NAMED} more` : ""}
    </>
  );
}
