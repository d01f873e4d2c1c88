/** `roomd signup`: the people who may sign up, with an organization of their own. */
import type { Command } from "commander";
import { type ConfigOption, readConfiguration, withConfigOption, withOperator } from "../../host/operator.ts";
import { command, commandGroup } from "../../kit/command.ts";
import { fieldLines, type JsonOption, showValue, table } from "../../kit/output.ts";
import { sayWhetherOff, webUrl } from "./user.ts";

type Options = JsonOption & ConfigOption;

export function signupCommand(): Command {
  return commandGroup("signup", {
    summary: "invitations and requests to sign up with a separate organization (run on the host)",
    examples: ["roomd signup invite ada@example.org", "roomd signup list", "roomd signup approve ada@example.org"],
  })
    .addCommand(invite())
    .addCommand(list())
    .addCommand(approve())
    .addCommand(refuse());
}

function invite(): Command {
  const about = {
    summary: "print a single-use link to sign up within 72 hours",
    notes: ["signup.mode must not be closed. With --mail the link is sent by e-mail, and not printed."],
    examples: ["roomd signup invite ada@example.org", "roomd signup invite ada@example.org --mail"],
  };
  return withConfigOption(command("invite <email>", about))
    .option("--mail", "send the link by e-mail")
    .action(async (email: string, options: Options & { mail?: boolean }) => {
      await showLink(options, (operator) => operator.inviteToSignUp(email, options.mail === true));
    });
}

function list(): Command {
  const about = {
    summary: "list pending sign-up requests",
    examples: ["roomd signup list", "roomd signup list --json"],
  };
  return withConfigOption(command("list", about)).action(async (options: Options) => {
    const items = await withOperator(options, (operator) => operator.listSignUps());
    await showValue({ items, next_cursor: null }, options, () =>
      table(
        ["E-MAIL", "NAME", "NOTE", "SINCE"],
        items.map(({ email, name, note, created_at }) => [email, name, note, created_at]),
      ),
    );
  });
}

function approve(): Command {
  const about = {
    summary: "approve a sign-up request",
    notes: ["The link is sent by e-mail if smtp.host is set; otherwise it is printed for you to pass on."],
    examples: ["roomd signup approve ada@example.org"],
  };
  return withConfigOption(command("approve <email>", about)).action(async (email: string, options: Options) => {
    await showLink(options, (operator) => operator.approveSignUp(email));
  });
}

function refuse(): Command {
  const about = {
    summary: "discard a sign-up request without notifying the requester",
    examples: ["roomd signup refuse ada@example.org"],
  };
  return withConfigOption(command("refuse <email>", about)).action(async (email: string, options: Options) => {
    await showValue(await withOperator(options, (operator) => operator.refuseSignUp(email)), options, fieldLines);
  });
}

type Operator = Parameters<Parameters<typeof withOperator>[1]>[0];

/** Shows the link of a person who may now sign up. */
async function showLink(options: Options, make: (operator: Operator) => ReturnType<Operator["approveSignUp"]>) {
  const { config } = readConfiguration(options);
  const web = webUrl(config);
  const made = await withOperator(options, make);
  const { email, path, expires_at } = made;
  const how = path === null ? { is_mailed: true } : { url: web + path };
  await showValue({ email, ...how, expires_at }, options, fieldLines);
  await sayWhetherOff(config, options);
}
