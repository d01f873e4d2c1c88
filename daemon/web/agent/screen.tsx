/** Owns the page of a sandbox's screen: which sandboxes have one, and what makes one. */
import { Empty, Line, Prompt } from "../parts/parts.tsx";
import { Foreign } from "../parts/text.tsx";
import { isThere, type TabProps } from "./tab.ts";

/** The template that has a screen. */
const TEMPLATE = "desktop";

export default function Screen({ room: { room_id: room, state }, agentId: agent, sandbox }: TabProps) {
  if (state !== "active") return <Empty title="The room has ended, and its screens with it." />;
  if (isThere(sandbox) && sandbox.template_id === TEMPLATE) {
    return (
      <Empty title="This sandbox has a screen, which these pages do not show.">
        <p>What is done in it by commands is seen under Commands and Terminal.</p>
      </Empty>
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

/** The names are those of the address, which have been looked at. */
const question = (room: string, agent: string) =>
  `In roomd room \`${room}\` I want agent \`${agent}\` to have a sandbox with a screen. Look first whether it has a sandbox: if so, tell me what would be lost with it, and change nothing until I agree. Otherwise make one from the template \`${TEMPLATE}\`, and tell me how to watch it.`;
