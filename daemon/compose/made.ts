/** Kinds of resources that end with their maker. test/house/made.test.ts compares the list with the columns of all tables. */
import { applicationsMade } from "../domain/oauth/index.ts";
import { type MadeKind, type MakerRules, makeMadeEnds, sshKeysMade } from "../domain/orgs/index.ts";
import { portsMade } from "../domain/ports/index.ts";
import { isOver, requireMaker } from "../domain/users/index.ts";
import { webhooksMade } from "../domain/webhooks/index.ts";

/** Applications come first: each is itself a maker. */
export const MADE: readonly MadeKind[] = [applicationsMade, sshKeysMade, portsMade, webhooksMade];

export const MAKER_RULES: MakerRules = { requireMaker, ...makeMadeEnds(MADE, isOver) };
