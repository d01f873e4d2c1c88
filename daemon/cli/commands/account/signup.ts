/** `roomd signup`: the people who may sign up, with an organization of their own. */
import type { Command } from "commander";
import { type ConfigOption, readConfiguration, withConfigOption, withOperator } from "../../host/operator.ts";
import { command, commandGroup } from "../../kit/command.ts";
import { fieldLines, type JsonOption, showValue, table } from "../../kit/output.ts";
import { sayWhetherOff, webUrl } from "./user.ts";

type Options = JsonOption & ConfigOption;

export function signupCommand(): Command {
  return commandGroup("signup", {
    summary: "who may sign up, with an organization of their own (run on the host)",
    examples: ["roomd signup invite ada@example.org", "roomd signup list", "roomd signup approve ada@example.org"],
  })
    .addCommand(invite())
    .addCommand(list())
    .addCommand(approve())
    .addCommand(refuse());
}

function invite(): Command {
  const about = {
    summary: "print a link by which somebody signs up, once and within 72 hours",
    notes: ["signup.mode must not be closed. With --mail a letter brings the link, and it is not printed."],
    examples: ["roomd signup invite ada@example.org", "roomd signup invite ada@example.org --mail"],
  };
  return withConfigOption(command("invite <email>", about))
    .option("--mail", "send a letter with the link")
    .action(async (email: string, options: Options & { mail?: boolean }) => {
      await showLink(options, (operator) => operator.inviteToSignUp(email, options.mail === true));
    });
}

function list(): Command {
  const about = {
    summary: "list who has asked to sign up and waits for an answer",
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
    summary: "let somebody sign up who has asked to",
    notes: ["A letter brings the link, where smtp.host is set; else it is printed, to be handed over."],
    examples: ["roomd signup approve ada@example.org"],
  };
  return withConfigOption(command("approve <email>", about)).action(async (email: string, options: Options) => {
    await showLink(options, (operator) => operator.approveSignUp(email));
  });
}

function refuse(): Command {
  const about = {
    summary: "forget that somebody has asked to sign up; nobody is told",
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
