/** Page of prompts: how to connect a client, and prompts with names filled in. It has no actions: everything is to be copied. */
import { Fragment } from "preact";
import type { AccountRecord } from "../../../../shared/api/people/account.ts";
import { PROMPTS } from "../../../../shared/prompts/catalogue.ts";
import { clientWays } from "../../../../shared/prompts/clients.ts";
import { FILLINGS, type Filling, fill, KINDS } from "../../../../shared/prompts/prompt.ts";
import { CopyOf, Field, Submit } from "../components/forms.tsx";
import type { Page } from "../layout.tsx";
import { whoOf } from "./account.tsx";

export type Given = Partial<Record<Filling, string>>;

const HEADINGS = {
  ask: "Ask",
  diagnose: "Diagnose (read only)",
  debug: "Fix",
  plan: "Plan and set up",
} as const;
const LABELS: Record<Filling, string> = { room: "Room", agent: "Agent", goal: "Goal", agents: "Number of agents" };

function ToCopy({ id, children }: { id: string; children: string }) {
  return (
    <>
      <pre id={id}>{children}</pre>
      <p>
        <CopyOf id={id} />
      </p>
    </>
  );
}

export function promptsPage(account: AccountRecord, url: string, given: Given): Page {
  return {
    title: "Prompts",
    at: "/prompts",
    who: whoOf(account),
    body: (
      <>
        <p>
          Ready-made prompts for an agent connected to roomd. Copy one, use them as MCP prompts in your client, or
          install them with <code>roomd skills install</code>.
        </p>
        <h2>Connect a client</h2>
        {clientWays(url).map(({ client, signsIn, hasKey, opens }, n) => (
          <details key={client} class="copied">
            <summary class="line">{client}</summary>
            <p>
              To sign in, put this into {signsIn.into}. It opens a page of this service on which you authorize it.
              {opens ? (
                <>
                  {" "}
                  Or <a href={opens}>open it there</a>.
                </>
              ) : null}
            </p>
            <ToCopy id={`client-${n}`}>{signsIn.text}</ToCopy>
            <p>
              With an <a href="/account/keys">API key</a>, put this into {hasKey.into}.
            </p>
            <ToCopy id={`client-${n}-key`}>{hasKey.text}</ToCopy>
          </details>
        ))}
        <h2>Choose a prompt</h2>
        <form method="get" action="/prompts" class="row">
          {(Object.keys(FILLINGS) as Filling[]).map((name) => (
            <Field key={name} name={name} label={LABELS[name]} value={given[name]} isOptional />
          ))}
          <Submit>Fill in</Submit>
        </form>
        {KINDS.map((kind) => (
          <Fragment key={kind}>
            <h2>{HEADINGS[kind]}</h2>
            {PROMPTS.filter((each) => each.kind === kind).map((prompt) => (
              <details key={prompt.name} class="copied">
                <summary class="line">
                  {prompt.title} <span class="muted">{prompt.about}</span>
                </summary>
                <ToCopy id={prompt.name}>{fill(prompt, given)}</ToCopy>
              </details>
            ))}
          </Fragment>
        ))}
      </>
    ),
  };
}
