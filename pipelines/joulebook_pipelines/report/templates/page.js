(() => {
  const said = document.getElementById("said");
  let timer = 0;
  const copy = (element) => {
    const text = element.dataset.copy;
    const done = () => {
      said.textContent = "copied: " + text;
      said.classList.add("on");
      clearTimeout(timer);
      timer = setTimeout(() => { said.classList.remove("on"); said.textContent = ""; }, 1500);
    };
    if (navigator.clipboard && window.isSecureContext) { navigator.clipboard.writeText(text).then(done, () => {}); return; }
    const area = document.createElement("textarea");
    area.value = text;
    document.body.append(area);
    area.select();
    if (document.execCommand("copy")) { done(); }
    area.remove();
  };
  for (const element of document.querySelectorAll(".num[data-copy]")) {
    element.setAttribute("role", "button");
    element.tabIndex = 0;
    element.title = "copy " + element.dataset.copy;
  }
  document.addEventListener("click", (event) => {
    const element = event.target.closest(".num[data-copy]");
    if (element) { copy(element); }
  });
  document.addEventListener("keydown", (event) => {
    if ((event.key === "Enter" || event.key === " ") && event.target.matches(".num[data-copy]")) { event.preventDefault(); copy(event.target); }
  });
  const open = () => {
    const target = location.hash && document.getElementById(decodeURIComponent(location.hash.slice(1)));
    for (let at = target; at; at = at.parentElement) { if (at.tagName === "DETAILS") { at.open = true; } }
    if (target) { target.scrollIntoView(); }
  };
  addEventListener("hashchange", open);
  open();
  addEventListener("beforeprint", () => { for (const d of document.querySelectorAll("details")) { d.open = true; } });
  const button = document.getElementById("theme");
  const root = document.documentElement;
  button.hidden = false;
  button.addEventListener("click", () => {
    const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
    root.dataset.theme = dark ? "light" : "dark";
  });
})();
