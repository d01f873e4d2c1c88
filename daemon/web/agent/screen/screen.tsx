/**
 * The page of a sandbox's screen: live if possible, otherwise a refreshed picture; without a screen, the prompt that creates a sandbox with
 * one.
 */
import { Empty, Line, Prompt } from "../../components/parts.tsx";
import { Foreign } from "../../components/text.tsx";
import { isThere, sandboxPath, type TabProps } from "../tab.ts";
import { Live } from "./live.tsx";
import { Recordings } from "./recordings.tsx";

/** The bundled template with a screen. */
const TEMPLATE = "desktop";
/** Bundled templates without a screen; for other templates only the service can tell. */
const WITHOUT = ["default", "docker", "browser"];

export default function Screen({ room: { room_id: room, state }, agentId: agent, sandbox }: TabProps) {
  if (state !== "active") return <Empty title="The room has ended, and its screens with it." />;
  const mayHaveHad = sandbox !== null && !WITHOUT.includes(sandbox.template_id);
  if (isThere(sandbox) && mayHaveHad) {
    return (
      <>
        <Live
          key={`${sandbox.sandbox_id} ${sandbox.state}`}
          path={`${sandboxPath(sandbox)}/screen`}
          room={room}
          agent={agent}
        />
        <Recordings path={`${sandboxPath(sandbox)}/screen`} room={room} agent={agent} isThere />
        <h2>In a shell</h2>
        <Line words={["screen", room, agent, "--output", "screen.png"]} />
      </>
    );
  }
  return (
    <>
      {mayHaveHad ? (
        <Recordings path={`${sandboxPath(sandbox)}/screen`} room={room} agent={agent} isThere={false} />
      ) : null}
      <Without {...{ room, agent, sandbox }} />
    </>
  );
}

function Without({ room, agent, sandbox }: { room: string; agent: string; sandbox: TabProps["sandbox"] }) {
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
      <p>Or give your agent this prompt:</p>
      <Prompt text={question(room, agent)} about="makes a sandbox" />
    </Empty>
  );
}

/** The names are those of the address, which have been validated. */
const question = (room: string, agent: string) =>
  `In roomd room \`${room}\`, give agent \`${agent}\` a sandbox with a screen. First check whether it has a sandbox: if so, list the data that would be lost with it, and change nothing until I agree. Otherwise create a sandbox from the template \`${TEMPLATE}\`, and give me the address of the page that shows its screen.`;
