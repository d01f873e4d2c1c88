/** Owns the page of a sandbox's screen: a picture of it that is taken again while one looks, and what makes a sandbox that has one. */
import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { ask } from "../data/api.ts";
import { useEvery } from "../data/every.ts";
import { useLoaded } from "../data/resource.ts";
import { Empty, Line, Prompt, Shown } from "../parts/parts.tsx";
import { Clock, Foreign } from "../parts/text.tsx";
import { isThere, sandboxPath, type TabProps } from "./tab.ts";

/** The template that has a screen. */
const TEMPLATE = "desktop";
/** Those that have none, as they come; of others only the service can tell. */
const WITHOUT = ["default", "docker", "browser"];
/** What a screen shows is no event. */
const EVERY_MS = 5000;

export default function Screen({ room: { room_id: room, state }, agentId: agent, sandbox }: TabProps) {
  if (state !== "active") return <Empty title="The room has ended, and its screens with it." />;
  if (isThere(sandbox) && !WITHOUT.includes(sandbox.template_id)) {
    return (
      <>
        <Picture key={sandbox.sandbox_id} path={`${sandboxPath(sandbox)}/screen`} />
        <h2>In a shell</h2>
        <Line words={["screen", room, agent, "--output", "screen.png"]} />
      </>
    );
  }
  return (
    <Empty title={isThere(sandbox) ? "This sandbox has no screen." : "There is no sandbox with a screen."}>
      <p>
        {isThere(sandbox) ? (
          <>
            It was made from the template <Foreign text={sandbox.template_id} mono />.{" "}
          </>
        ) : null}
        A sandbox made from the template <code>{TEMPLATE}</code> has a screen.
      </p>
      {isThere(sandbox) ? (
        <p>An agent has one sandbox at a time. Once this one is destroyed, this line makes one with a screen:</p>
      ) : (
        <p>To make one:</p>
      )}
      <Line words={["sandbox", "create", room, agent, "--template", TEMPLATE]} />
      <p>Or ask your agent:</p>
      <Prompt text={question(room, agent)} about="makes a sandbox" />
    </Empty>
  );
}

function Picture({ path }: { path: string }) {
  const found = useLoaded(`screen ${path}`, async (signal) => {
    const response = await ask(path, { Accept: "image/png" }, signal);
    return { blob: await response.blob(), at: new Date().toISOString() };
  });
  useEvery(true, EVERY_MS, found.again);
  return <Shown of={found}>{({ blob, at }) => <Taken blob={blob} at={at} />}</Shown>;
}

function Taken({ blob, at }: { blob: Blob; at: string }) {
  const url = useSignal("");
  useEffect(() => {
    const made = URL.createObjectURL(blob);
    url.value = made;
    return () => URL.revokeObjectURL(made);
  }, [blob]);
  return (
    <figure class="screen">
      {url.value ? <img src={url.value} alt="What the screen shows" decoding="async" /> : null}
      <figcaption class="muted">
        As of <Clock at={at} />. It is taken again every {EVERY_MS / 1000} seconds while you look; nothing that you
        press reaches it.
      </figcaption>
    </figure>
  );
}

/** The names are those of the address, which have been looked at. */
const question = (room: string, agent: string) =>
  `In roomd room \`${room}\` I want agent \`${agent}\` to have a sandbox with a screen. Look first whether it has a sandbox: if so, tell me what would be lost with it, and change nothing until I agree. Otherwise make one from the template \`${TEMPLATE}\`, and tell me the address of the page on which I see its screen.`;
