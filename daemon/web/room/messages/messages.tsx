/** The page of a room's messages: like mail, the newest first, replies below the message that they answer. */
import { useEffect, useMemo } from "preact/hooks";
import type { MessageRecord } from "../../../../shared/api/fabric.ts";
import { Choices, Empty, Line, Shown, State, Trouble } from "../../components/parts.tsx";
import { Clock, countText, Foreign, Since } from "../../components/text.tsx";
import { place, setQuery } from "../../shell/router.ts";
import type { TabProps } from "../tab.ts";
import { Absent } from "./absent.tsx";
import { useMessages } from "./data.ts";
import { Message } from "./message.tsx";
import { lineOf, type Thread, threadsOf, whomOf } from "./threads.ts";

const KINDS = ["", "event", "request", "response"] as const;
/** Maximum number of listed threads; more would not be readable. */
const MAX_THREADS = 300;

export default function Messages({ room }: TabProps) {
  const { room_id: roomId } = room;
  const { all, hasOlder, newest, loadOlder, reach, olderProblem } = useMessages(room);
  const { query } = place.value;
  const chosen = {
    kind: query.get("kind") ?? "",
    agent: query.get("agent") ?? "",
    topic: query.get("topic") ?? "",
    text: query.get("q") ?? "",
  };
  const opened = query.get("message");
  const threads = useMemo(() => threadsOf(all.value), [all.value]);
  const agents = useMemo(() => [...new Set(all.value.map(({ source }) => source))].sort(), [all.value]);
  const isKnown = useMemo(() => all.value.some(({ message_id }) => message_id === opened), [all.value, opened]);
  // Before the first answer, received messages are not drawn.
  const isShown = isKnown && newest.data === true;
  useEffect(() => {
    if (isShown) document.getElementById(`message-${opened}`)?.scrollIntoView({ block: "nearest" });
  }, [opened, isShown]);
  if (room.state !== "active" && newest.problem) {
    return (
      <Empty title="This room has ended, and its messages with it.">
        <p>
          The <a href={`/audit?room=${encodeURIComponent(roomId)}&event=message.`}>audit</a> still has each message's
          id, sender, recipients and time.
        </p>
      </Empty>
    );
  }
  const found = threads.filter(({ messages }) => messages.some((each) => matches(each, chosen)));
  return (
    <Shown of={newest} rows={6}>
      {() => (
        <>
          <search class="filters">
            <Choices
              label="Kind"
              of={KINDS.map((kind) => [kind, kind || "all"] as const)}
              at={KINDS.find((kind) => kind === chosen.kind) ?? ""}
              choose={(kind) => setQuery({ kind })}
            />
            <select
              aria-label="Agent"
              value={chosen.agent}
              onChange={({ currentTarget }) => setQuery({ agent: currentTarget.value })}
            >
              <option value="">all agents</option>
              {agents.map((agent) => (
                <option key={agent} value={agent}>
                  {agent}
                </option>
              ))}
            </select>
            <input
              data-search
              type="search"
              aria-label="Search in messages"
              placeholder="text, topic or id"
              value={chosen.text}
              onInput={({ currentTarget }) => setQuery({ q: currentTarget.value })}
            />
            <span class="muted">
              {countText(all.value.length)} {all.value.length === 1 ? "message" : "messages"}
              {hasOlder.value ? ", older ones are not shown" : ""}
            </span>
          </search>
          {opened === null || isKnown ? null : <Absent key={opened} id={opened} roomId={roomId} reach={reach} />}
          {all.value.length === 0 ? (
            newest.problem ? null : (
              <Empty title="No messages yet.">
                <p>
                  Agents send by the tool <code>agent_send</code>, in a sandbox by <code>room send</code>, and you by:
                </p>
                <Line words={["send", roomId, "worker", "hello"]} />
              </Empty>
            )
          ) : found.length === 0 ? (
            <Empty title="No matching messages." />
          ) : (
            <ul class="threads">
              {found
                .filter((thread, n) => n < MAX_THREADS || has(thread, opened))
                .map((thread) => (
                  <Row key={thread.first.message_id} thread={thread} opened={opened} roomId={roomId} />
                ))}
            </ul>
          )}
          {found.length > MAX_THREADS ? (
            <p class="muted">
              The newest {MAX_THREADS} of {countText(found.length)} are shown: search for others.
            </p>
          ) : null}
          {olderProblem.value ? <Trouble problem={olderProblem.value} again={loadOlder} /> : null}
          {hasOlder.value ? (
            <p>
              <button type="button" class="button" onClick={loadOlder}>
                Show older
              </button>
            </p>
          ) : null}
        </>
      )}
    </Shown>
  );
}

function matches(
  message: MessageRecord,
  { kind, agent, topic, text }: { kind: string; agent: string; topic: string; text: string },
): boolean {
  const query = text.trim().toLowerCase();
  return (
    (!kind || message.kind === kind) &&
    (!agent ||
      message.source === agent ||
      message.destination === agent ||
      (message.destinations ?? []).includes(agent)) &&
    (!topic || message.topic === topic) &&
    (!query ||
      [message.message_id, message.topic ?? "", lineOf(message)].some((each) => each.toLowerCase().includes(query)))
  );
}

const has = ({ messages }: Thread, id: string | null): boolean =>
  id !== null && messages.some(({ message_id }) => message_id === id);

function Row({ thread, opened, roomId }: { thread: Thread; opened: string | null; roomId: string }) {
  const { first, messages, isOpen } = thread;
  const isShown = has(thread, opened);
  const last = messages.at(-1) ?? first;
  return (
    <li class={isShown ? "shown" : undefined}>
      <button
        type="button"
        class="thread"
        data-row
        aria-expanded={isShown}
        onClick={() => setQuery({ message: isShown ? null : first.message_id })}
      >
        <span class="who">
          <Foreign text={first.source} most={40} /> → <Foreign text={whomOf(first)} most={60} />
        </span>
        <span class="line">
          <Foreign
            text={lineOf(first)}
            most={160}
            mono={first.payload_b64 === null && typeof first.payload !== "string"}
          />
        </span>
        <span class="facts-of">
          {isOpen ? (
            <State look="wait">
              no reply for <Since at={first.created_at} />
            </State>
          ) : null}
          {messages.length > 1 ? (
            <span class="muted">
              {messages.length - 1} {messages.length === 2 ? "reply" : "replies"}
            </span>
          ) : null}
          <Clock at={last.created_at} />
        </span>
      </button>
      {isShown
        ? messages.map((message) => (
            <Message
              key={message.message_id}
              message={message}
              roomId={roomId}
              isOpened={message.message_id === opened}
            />
          ))
        : null}
    </li>
  );
}
