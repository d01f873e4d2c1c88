/** The steps to a first sandbox. They have no buttons: the user copies, the agent acts, and each step is ticked automatically. */
import { useSignal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import type { AuditRecord } from "../../../shared/api/audit.ts";
import { PROMPTS } from "../../../shared/prompts/catalogue.ts";
import { clientWays } from "../../../shared/prompts/clients.ts";
import { fill } from "../../../shared/prompts/prompt.ts";
import { Choices, Copy, Prompt } from "../components/parts.tsx";
import { Clock, Foreign, spanText } from "../components/text.tsx";
import { agentPath, roomPath } from "../data/paths.ts";
import { boot } from "../shell/boot.ts";

export interface Steps {
  /** The record of the step; null: it has not happened yet. */
  key: AuditRecord | null;
  connected: AuditRecord | null;
  called: AuditRecord | null;
  sandbox: AuditRecord | null;
  /** A room that already has a running sandbox, such as the setup's room. */
  running: string | undefined;
}

const promptOf = (name: string) => {
  const prompt = PROMPTS.find((each) => each.name === name);
  return prompt ? { ...prompt, text: fill(prompt, {}) } : null;
};

export default function FirstSteps({ steps, leave }: { steps: Steps; leave: () => void }) {
  const { key, connected, called, sandbox, running } = steps;
  const done = [true, key, connected, called, sandbox].map(Boolean);
  const now = done.indexOf(false);
  const look = promptOf("is-it-healthy");
  const smoke = promptOf("smoke-test");
  const step = (n: number) => ({ isDone: done[n] === true, isNow: n === now });
  return (
    <>
      <p class="muted lead">
        Copy each line to your agent. Steps complete automatically.{" "}
        {running && !sandbox ? (
          <>
            A sandbox is running already: <a href={roomPath(running)}>{running}</a>.
          </>
        ) : null}{" "}
        <button type="button" class="link" onClick={leave}>
          {sandbox ? "Close" : "Skip setup"}
        </button>
      </p>
      <ol class="steps">
        <Step {...step(0)} name="Account">
          <span class="muted">
            <Foreign text={boot.user.email} />, {boot.user.role} of <Foreign text={boot.org.name} />
          </span>
        </Step>
        <Step {...step(1)} name="API key" at={key?.at}>
          {key ? (
            <span class="muted">
              <Foreign text={String(key.details.name ?? key.actor.name)} />
            </span>
          ) : (
            <span class="muted">
              Create one at <a href="/account/keys">Account, API keys</a>: it is shown once, with the two lines to copy.
              A client that signs in needs none.
            </span>
          )}
        </Step>
        <Step {...step(2)} name="Connect your client" at={connected?.at}>
          {connected ? (
            <span class="muted">
              <Foreign text={String(connected.details.client ?? connected.actor.name)} /> by {connected.source}
            </span>
          ) : (
            <Clients />
          )}
        </Step>
        <Step {...step(3)} name="First call" at={called?.at}>
          {called ? (
            <span class="muted">{called.event}</span>
          ) : look ? (
            <Prompt text={look.text} about="reads only">
              “{look.title}” {look.about}
            </Prompt>
          ) : null}
        </Step>
        <Step {...step(4)} name="First sandbox" at={sandbox?.at}>
          {sandbox ? (
            <span class="muted">
              Your first sandbox ran after {spanText(sandbox.duration_ms ?? 0)}:{" "}
              <a href={agentPath(sandbox.room_id ?? "", sandbox.agent_id ?? "")}>open it</a>
            </span>
          ) : smoke ? (
            <Prompt text={smoke.text} about="creates a room and a sandbox, and destroys both">
              “{smoke.title}” {smoke.about}
            </Prompt>
          ) : null}
        </Step>
      </ol>
      <p class="muted">
        More prompts are at <a href="/prompts">Prompts</a>.
      </p>
    </>
  );
}

function Step({
  name,
  isDone,
  isNow,
  at,
  children,
}: {
  name: string;
  isDone: boolean;
  isNow: boolean;
  at?: string | undefined;
  children: ComponentChildren;
}) {
  return (
    <li class={isDone ? "is-done" : isNow ? "is-now" : undefined} aria-current={isNow ? "step" : undefined}>
      <span class="tick" role="img" aria-label={isDone ? "done" : isNow ? "now" : "to come"} />
      <div>
        <b>{name}</b> {children}
      </div>
      {at ? <Clock at={at} /> : null}
    </li>
  );
}

/** The sign-in command of the selected client. */
function Clients() {
  const ways = clientWays(boot.url);
  const at = useSignal(ways[0]?.client ?? "");
  const way = ways.find(({ client }) => client === at.value);
  return (
    <div>
      <Choices
        label="Client"
        of={ways.map(({ client }) => [client, client] as const)}
        at={at.value}
        choose={(client) => {
          at.value = client;
        }}
      />
      {way ? (
        <div class="ask">
          <pre>{way.signsIn.text}</pre>
          <Copy text={way.signsIn.text} main />
          <small>
            Into {way.signsIn.into}. It opens a page of this service, where you authorize it. With a key instead: see{" "}
            <a href="/prompts">Prompts</a>.
          </small>
        </div>
      ) : null}
    </div>
  );
}
