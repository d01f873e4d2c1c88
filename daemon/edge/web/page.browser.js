// What a browser adds to pages that work without it: the token of a link from behind the #, and copying.

const token = document.querySelector("form[data-token] input[name=token]");
if (token && location.hash.length > 1) {
  token.value = location.hash.slice(1);
  history.replaceState(null, "", location.pathname);
  token.form.requestSubmit();
}
for (const button of document.querySelectorAll("button[data-copy]")) {
  button.hidden = false;
  button.addEventListener("click", async () => {
    await navigator.clipboard.writeText(document.getElementById(button.dataset.copy).textContent);
    document.querySelector(".said").textContent = "Copied.";
    button.textContent = "Copied";
  });
}
